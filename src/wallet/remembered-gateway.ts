import { join } from "node:path";
import { readSmallFile, writePrivateFile } from "../io/files.ts";

const path = (home: string) => join(home, "gateway");

/** Keeps the gateway that `join` was given, for `wallet balance` to ask. */
export async function rememberGateway(home: string, url: string): Promise<void> {
	await writePrivateFile(path(home), `${url}\n`);
}

/** The gateway this home joined last; null when it never did. */
export async function rememberedGateway(home: string): Promise<string | null> {
	const bytes = await readSmallFile(path(home), 4096);
	const url = bytes?.toString("utf8").trim() ?? "";
	return url === "" ? null : url;
}
