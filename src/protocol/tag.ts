import { equalBytes, hmacSha256 } from "../io/crypto.ts";
import { limits } from "./limits.ts";

/** Tags the messages of one direction in order: `HMAC-SHA256(key, u64 counter || SHA-256(message))[0..16]` (wire.md section 1). */
export interface Tagger {
	/** The tag of the next message, given its SHA-256. */
	next(digest: Uint8Array): Uint8Array;
	/** True when `tag` is that of the next message; counts it either way. */
	check(tag: Uint8Array, digest: Uint8Array): boolean;
}

/** A tagger whose counter starts at 0. */
export function createTagger(key: Uint8Array): Tagger {
	const counter = new Uint8Array(8);
	const view = new DataView(counter.buffer);
	let count = 0n;
	function next(digest: Uint8Array): Uint8Array {
		view.setBigUint64(0, count++, true);
		return hmacSha256(key, counter, digest).subarray(0, limits.tagBytes);
	}
	return { next, check: (tag, digest) => equalBytes(tag, next(digest)) };
}
