import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { z } from "zod";
import { KvasirError } from "../errors.ts";
import { equalBytes } from "../io/crypto.ts";
import { openPem } from "./encrypted-pem.ts";
import { isMnemonic, seedOfMnemonic } from "./mnemonic.ts";

/** The forms in which a wallet key is kept elsewhere. */
export type KeyForm = "pem" | "solana" | "mnemonic";

export interface ForeignKey {
	readonly form: KeyForm;
	readonly key: KeyObject;
}

const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");
const solanaFile = z.array(z.number().int().min(0).max(255)).length(64);

/**
 * Reads a key from PEM (its passphrase may be empty), a Solana key file (JSON array of 64 numbers) or a BIP-39 mnemonic.
 * Throws `bad_key` or `passphrase`; no error quotes what was read.
 */
export function readKeyText(text: string, passphrase: string): ForeignKey {
	const trimmed = text.trim();
	if (trimmed.includes("-----BEGIN")) return { form: "pem", key: openPem(trimmed, passphrase) };
	if (trimmed.startsWith("[")) return { form: "solana", key: readSolanaFile(trimmed) };
	if (isMnemonic(trimmed)) return { form: "mnemonic", key: keyOfSeed(seedOfMnemonic(trimmed)) };
	throw new KvasirError("bad_key", "Cannot read the key: neither PEM, nor a Solana key file, nor a BIP-39 mnemonic", {
		hint: "A mnemonic's last word is a checksum: check spelling and order",
	});
}

/** The private key of a 32-byte seed. */
export function keyOfSeed(seed: Uint8Array): KeyObject {
	return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: "der", type: "pkcs8" });
}

/** The key as a Solana key file: seed and public key, 64 numbers. */
export function solanaText(key: KeyObject): string {
	return JSON.stringify([...seedOf(key), ...publicKeyOf(key)]);
}

function readSolanaFile(text: string): KeyObject {
	let numbers: unknown;
	try {
		numbers = JSON.parse(text);
	} catch {
		// Not JSON: refused below, without quoting it.
	}
	const parsed = solanaFile.safeParse(numbers);
	if (!parsed.success) throw new KvasirError("bad_key", "Cannot read the Solana key file: not 64 bytes");
	const bytes = Uint8Array.from(parsed.data);
	const key = keyOfSeed(bytes.subarray(0, 32));
	if (!equalBytes(publicKeyOf(key), bytes.subarray(32))) {
		throw new KvasirError("bad_key", "Cannot read the Solana key file: its public half belongs to another key");
	}
	return key;
}

function seedOf(key: KeyObject): Uint8Array {
	return key.export({ type: "pkcs8", format: "der" }).subarray(-32);
}

/** The 32-byte public key. */
export function publicKeyOf(key: KeyObject): Uint8Array {
	return new Uint8Array(createPublicKey(key).export({ type: "spki", format: "der" }).subarray(-32));
}
