import { createHmac } from "node:crypto";
import { entropyToMnemonic, mnemonicToSeedSync, validateMnemonic } from "@scure/bip39";
import { wordlist } from "@scure/bip39/wordlists/english.js";
import { KvasirError } from "../errors.ts";
import type { Random } from "../io/random.ts";

/** m/44'/501'/0'/0': the first account of Solana wallets. */
const solanaPath = [44, 501, 0, 0] as const;

/** Twelve English words (BIP-39, 128 bits). */
export function newMnemonic(random: Random): string {
	return entropyToMnemonic(random.bytes(16), wordlist);
}

/** True for words of the list with a right checksum, however they are spaced. */
export function isMnemonic(text: string): boolean {
	return validateMnemonic(normal(text), wordlist);
}

/** The 32-byte Ed25519 seed of a mnemonic at `solanaPath`. Throws `bad_key`, never quoting a word. */
export function seedOfMnemonic(text: string): Uint8Array {
	if (!isMnemonic(text)) {
		throw new KvasirError("bad_key", "Cannot read the mnemonic: not a BIP-39 sentence of English words", {
			hint: "Check its spelling and order: the last word is a checksum",
		});
	}
	return derive(mnemonicToSeedSync(normal(text)), solanaPath);
}

/** SLIP-10 for Ed25519: every step is hardened. */
export function derive(seed: Uint8Array, path: readonly number[]): Uint8Array {
	let node = hmac("ed25519 seed", seed);
	for (const index of path) {
		const step = Buffer.alloc(37);
		step.set(node.subarray(0, 32), 1);
		step.writeUInt32BE(index + 0x8000_0000, 33);
		node = hmac(node.subarray(32), step);
	}
	return new Uint8Array(node.subarray(0, 32));
}

function hmac(key: string | Uint8Array, data: Uint8Array): Buffer {
	return createHmac("sha512", key).update(data).digest();
}

function normal(text: string): string {
	return text.trim().toLowerCase().split(/\s+/).join(" ");
}
