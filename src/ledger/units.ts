/** How served bytes become money, by number: every receipt names the policy it was issued under. */
export interface Policy {
	readonly number: number;
	/** Nano-KVR for each 1,000,000 served bytes (one unit). */
	readonly nanoPerMillionBytes: bigint;
}

/** The policy of new receipts: 0.007 KVR a unit, exactly 7 nano a byte. */
export const defaultPolicy: Policy = { number: 1, nanoPerMillionBytes: 7_000_000n };

/** Every policy a receipt may name. */
export const knownPolicies: readonly Policy[] = [defaultPolicy];

/** What `pairs` (row, expert) pairs are worth in bytes: one f32 vector of `hidden` each, whatever the wire carried. */
export function servedBytesOf(pairs: bigint, hidden: number): bigint {
	return pairs * BigInt(hidden) * 4n;
}

/** An amount credited, and what is too small to credit yet. */
export interface Credit {
	/** Whole nano-KVR. */
	readonly nano: bigint;
	/** Millionths of a nano, 0 to 999,999: carried into the wallet's next credit. */
	readonly remainder: bigint;
}

/**
 * The credit for `bytes` at a rate, carrying the remainder of the credit before, so that any split of the same
 * work sums to the same amount: floor((bytes x rate + remainder) / 1,000,000) nano.
 */
export function creditOf(bytes: bigint, nanoPerMillionBytes: bigint, remainder: bigint): Credit {
	const millionths = bytes * nanoPerMillionBytes + remainder;
	const nano = millionths / 1_000_000n;
	return { nano, remainder: millionths - nano * 1_000_000n };
}
