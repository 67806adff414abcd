import { join } from "node:path";
import { makePrivateFolder } from "../../io/files.ts";
import type { AdmissionStore } from "../../splice/gateway/admission-store.ts";
import type { Context } from "../program/context.ts";
import { value } from "../program/options.ts";
import { text } from "../program/readers.ts";

/** Where the commands that say who may join find the gateway's database. */
export const admissionOptions = {
	db: value("--db <file|url>", "the gateway's store: a SQLite file or postgres://...", text),
};

/** Runs `work` on the admission lists of the gateway whose home this is. */
export async function withAdmission<T>(
	{ home, clock, random }: Context,
	{ db }: { readonly db: string | undefined },
	work: (store: AdmissionStore) => Promise<T>,
): Promise<T> {
	await makePrivateFolder(home);
	const { openAdmissionStore } = await import("../../splice/gateway/admission-store.ts");
	const store = await openAdmissionStore(db ?? join(home, "gateway.db"), { clock, random });
	try {
		return await work(store);
	} finally {
		await store.close();
	}
}
