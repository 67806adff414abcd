import type { Clock } from "../../io/clock.ts";

/** How often something may happen. */
export interface Rate {
	readonly perSecond: number;
	/** At once, after a quiet time. */
	readonly burst: number;
}

/** One bucket: takes a token, or says there is none. */
export interface TokenBucket {
	take(): boolean;
}

/** A bucket that starts full. */
export function createTokenBucket({ perSecond, burst }: Rate, clock: Clock): TokenBucket {
	let tokens = burst;
	let atMs = clock.monotonic();
	return {
		take() {
			const now = clock.monotonic();
			tokens = Math.min(burst, tokens + ((now - atMs) / 1000) * perSecond);
			atMs = now;
			if (tokens < 1) return false;
			tokens -= 1;
			return true;
		},
	};
}

/** A bucket for each name (an address, a key), in bounded memory: beyond `max` the one quiet for longest is forgotten. */
export interface KeyedBuckets {
	take(name: string): boolean;
	readonly size: number;
}

export function createKeyedBuckets(rate: Rate, clock: Clock, max: number): KeyedBuckets {
	const buckets = new Map<string, TokenBucket>();
	return {
		take(name) {
			const bucket = buckets.get(name) ?? createTokenBucket(rate, clock);
			// Insertion order is the order of last use.
			buckets.delete(name);
			buckets.set(name, bucket);
			if (buckets.size > max) buckets.delete(buckets.keys().next().value!);
			return bucket.take();
		},
		get size() {
			return buckets.size;
		},
	};
}
