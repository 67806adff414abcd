import type { Clock } from "../io/clock.ts";

/** Remembers what was seen for a while, in bounded memory: a signed request counts once. */
export interface NonceCache {
	/** True the first time `nonce` is seen within the cache's memory. */
	add(nonce: string): boolean;
	readonly size: number;
}

/** A time signature is valid 60 s either way, so that after 120 s no nonce can come back. */
const nonceMemoryMs = 120_000;
/** Nonces remembered in one process: 50 minutes of the default admission rate; beyond, the oldest is forgotten. */
const noncesMax = 65_536;

/** A cache that forgets after `memoryMs`, and the oldest first when it holds `max`. */
export function createNonceCache(clock: Clock, { memoryMs = nonceMemoryMs, max = noncesMax } = {}): NonceCache {
	// Insertion order is age order: a Map keeps it, and the monotonic clock never goes back.
	const seen = new Map<string, number>();
	return {
		add(nonce) {
			const now = clock.monotonic();
			for (const [old, atMs] of seen) {
				if (now - atMs < memoryMs && seen.size < max) break;
				seen.delete(old);
			}
			if (seen.has(nonce)) return false;
			seen.set(nonce, now);
			return true;
		},
		get size() {
			return seen.size;
		},
	};
}
