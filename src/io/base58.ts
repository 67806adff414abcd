import { base58 } from "@scure/base";
import { KvasirError } from "../errors.ts";

/** The base58 text (Bitcoin alphabet, as Solana uses) of a 32-byte key: an address. */
export function addressOf(key: Uint8Array): string {
	return base58.encode(key);
}

/** The 32 bytes of an address. Throws `bad_key`. */
export function keyOf(address: string): Uint8Array {
	let key: Uint8Array;
	try {
		key = base58.decode(address);
	} catch (cause) {
		throw new KvasirError("bad_key", `Cannot read the key "${address}": not base58`, { cause });
	}
	if (key.length !== 32) {
		throw new KvasirError("bad_key", `Cannot read the key "${address}": ${key.length} bytes, not 32`);
	}
	return key;
}
