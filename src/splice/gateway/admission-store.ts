import type { Kysely } from "kysely";
import { addressOf, keyOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import type { Random } from "../../io/random.ts";
import { type Location, openDatabase } from "../../ledger/database.ts";
import { migrate } from "../../ledger/migrate.ts";
import type { AdmissionCheck } from "./admission.ts";
import { type AdmissionTables, admissionMigrations } from "./admission-schema.ts";
import { createInvite, type Invite, type InviteOptions, listInvites, revokeInvite, spendInvite } from "./invites.ts";

/** Who may join, kept in the gateway's database: the gateway reads it, `kvasir gateway invite|ban|unban` writes it. */
export interface AdmissionStore {
	/** Decides by ban list and allow list; where neither has the key, `invite` is spent for it. */
	admit(key: string, invite: string | undefined): Promise<AdmissionCheck>;
	/** Whether a key is banned. */
	isBanned(key: string): Promise<boolean>;
	/** Those of `keys` that are banned. */
	bannedOf(keys: readonly string[]): Promise<readonly string[]>;
	/** A new single-use invite; `code` is the secret, told here and never again. */
	createInvite(options: InviteOptions): Promise<Invite & { readonly code: string }>;
	/** Newest first, at most 1,000. */
	listInvites(): Promise<readonly Invite[]>;
	/** Throws `not_admitted` when there is no open invite of that id. */
	revokeInvite(id: string): Promise<Invite>;
	/** Allows a key without an invite. */
	allow(key: string): Promise<void>;
	/** Takes a key off the allow list; false when it was not on it. */
	disallow(key: string): Promise<boolean>;
	ban(key: string, reason?: string): Promise<void>;
	/** False when it was not banned. */
	unban(key: string): Promise<boolean>;
	close(): Promise<void>;
}

const noteMax = 256;

/** Opens (or creates) the admission tables at the gateway's database. Throws `ledger` or `version`. */
export async function openAdmissionStore(
	location: Location,
	{ clock, random }: { clock: Clock; random: Random },
): Promise<AdmissionStore> {
	const db = await openDatabase<AdmissionTables>(location);
	const { kysely } = db;
	await migrate(db as never, "admission", admissionMigrations);

	const bannedOf = async (keys: readonly string[]) => {
		if (keys.length === 0) return [];
		const rows = await kysely
			.selectFrom("admission_bans")
			.select("key")
			.where("key", "in", [...keys])
			.execute();
		return rows.map(({ key }) => key);
	};

	return {
		async admit(key, code) {
			if ((await bannedOf([key])).length > 0) return { ok: false, reason: "banned" };
			const allowed = await kysely
				.selectFrom("admission_allowed")
				.select("key")
				.where("key", "=", key)
				.executeTakeFirst();
			if (allowed !== undefined) return { ok: true };
			if (code === undefined) return { ok: false, reason: "invite_missing" };
			return kysely.transaction().execute((trx) => spendInvite(trx, key, code, clock.now()));
		},
		bannedOf,
		isBanned: async (key) => (await bannedOf([key])).length > 0,
		createInvite: (options) => createInvite(kysely, options, { random, nowMs: clock.now() }),
		listInvites: () => listInvites(kysely, clock.now()),
		revokeInvite: (id) => revokeInvite(kysely, id, clock.now()),
		async allow(key) {
			await kysely
				.insertInto("admission_allowed")
				.values({ key: addressOf(keyOf(key)), invite: null, at_ms: BigInt(clock.now()) })
				.onConflict((oc) => oc.doNothing())
				.execute();
		},
		disallow: (key) => remove(kysely, "admission_allowed", key),
		async ban(key, reason = "") {
			await kysely
				.insertInto("admission_bans")
				.values({ key: addressOf(keyOf(key)), reason: reason.slice(0, noteMax), at_ms: BigInt(clock.now()) })
				.onConflict((oc) => oc.doNothing())
				.execute();
		},
		unban: (key) => remove(kysely, "admission_bans", key),
		close: () => db.close(),
	};
}

async function remove(
	kysely: Kysely<AdmissionTables>,
	table: "admission_allowed" | "admission_bans",
	key: string,
): Promise<boolean> {
	const removed = await kysely.deleteFrom(table).where("key", "=", key).returning("key").executeTakeFirst();
	return removed !== undefined;
}
