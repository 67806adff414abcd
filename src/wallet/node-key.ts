import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { KvasirError } from "../errors.ts";
import { type KeyPair, keyPairFromPrivateKey } from "../io/crypto.ts";
import { createKeyFile, readKeyFile } from "./key-file.ts";

/** Where a home keeps its node key. */
export function nodeKeyPath(home: string): string {
	return join(home, "node.key");
}

/**
 * The identity of this worker, backbone or hub: made on first use, PKCS#8 PEM, 0600, not encrypted, like an SSH host key.
 * Throws `bad_key` for a file that is not an Ed25519 key or that others can read.
 */
export async function loadNodeKey(home: string): Promise<KeyPair> {
	const path = nodeKeyPath(home);
	let text = await readKeyFile(path);
	if (text === null) {
		const { privateKey } = generateKeyPairSync("ed25519");
		await createKeyFile(path, privateKey.export({ type: "pkcs8", format: "pem" }) as string);
		// Whatever lies there now: another process may have been first.
		text = await readKeyFile(path);
	}
	return readNodeKey(path, text ?? "");
}

function readNodeKey(path: string, text: string): KeyPair {
	try {
		const key = createPrivateKey(text);
		if (key.asymmetricKeyType === "ed25519") return keyPairFromPrivateKey(key);
	} catch {
		// The same refusal; the cause may quote the file.
	}
	throw new KvasirError("bad_key", `Cannot read the node key ${path}: not an Ed25519 key in PKCS#8 PEM`, {
		hint: "Restore it from a backup, or move it away to be a new node",
	});
}
