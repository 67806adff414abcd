import { stat } from "node:fs/promises";
import { KvasirError } from "../../errors.ts";
import { readSmallFile, writePrivateFile } from "../../io/files.ts";
import type { Random } from "../../io/random.ts";

const secretBytes = 32;

/** The secret that gateway and hub share, 32 bytes in hex. Made where there is none. Throws `auth`. */
export async function makeSecret(path: string, random: Random): Promise<Uint8Array> {
	const there = await readSmallFile(path, 1024);
	if (there !== null) return parseSecret(path, there);
	const secret = random.bytes(secretBytes);
	await writePrivateFile(path, `${Buffer.from(secret).toString("hex")}\n`);
	return secret;
}

/** Reads a secret that the hub made. Throws `auth` where there is none, where it is no secret, and where others may read it. */
export async function readSecret(path: string, platform: string): Promise<Uint8Array> {
	const bytes = await readSmallFile(path, 1024);
	if (bytes === null) {
		throw new KvasirError("auth", `Cannot read the hub's secret ${path}: no such file`, {
			hint: "kvasir serve-hub --secret-file FILE makes it on its first start; copy it to the gateway",
		});
	}
	const { mode } = await stat(path);
	if (platform !== "win32" && (mode & 0o077) !== 0) {
		throw new KvasirError("auth", `Cannot use the hub's secret ${path}: others can read it`, {
			hint: `chmod 600 ${path}`,
		});
	}
	return parseSecret(path, bytes);
}

function parseSecret(path: string, bytes: Buffer): Uint8Array {
	const text = bytes.toString("utf8").trim();
	if (!/^[0-9a-f]{64}$/.test(text)) {
		throw new KvasirError("auth", `Cannot use the hub's secret ${path}: not ${secretBytes} bytes in hex`);
	}
	return Buffer.from(text, "hex");
}
