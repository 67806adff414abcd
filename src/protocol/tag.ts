import { equalBytes, hmacSha256, sha256 } from "../io/crypto.ts";
import { limits } from "./limits.ts";

/** Tags the messages of one direction in order: `HMAC-SHA256(key, u64 counter || SHA-256(message))[0..16]` (wire.md section 1). */
export interface Tagger {
	/** The tag of the next message, given as its parts. */
	next(...parts: Uint8Array[]): Uint8Array;
	/** True when `tag` is that of the next message; counts it either way. */
	check(tag: Uint8Array, message: Uint8Array): boolean;
}

/** A tagger whose counter starts at 0. */
export function createTagger(key: Uint8Array): Tagger {
	const counter = new Uint8Array(8);
	const view = new DataView(counter.buffer);
	let count = 0n;
	function next(...parts: Uint8Array[]): Uint8Array {
		view.setBigUint64(0, count++, true);
		return hmacSha256(key, counter, sha256(...parts)).subarray(0, limits.tagBytes);
	}
	return { next, check: (tag, message) => equalBytes(tag, next(message)) };
}
