import type { Random } from "../io/random.ts";

/** How long to wait before the next dial. */
export interface Backoff {
	/** Dials that failed since the last success. */
	readonly failures: number;
}

/** The first redial comes after U(0, 5 s), so that the workers of a restarted gateway do not return at once. */
const firstRedialMs = 5_000;
/** Doubling stops here. */
const redialMaxMs = 60_000;

/** Nothing failed yet: at the start, after a link that worked, and whenever the network says that it changed (SIGHUP, wake). */
export const noFailures: Backoff = { failures: 0 };

/**
 * Milliseconds until the next dial, with full jitter: U(0, min(60 s, 5 s x 2^failures)); a peer's Retry-After is the least.
 * Pure: give it what it returned in `next`. Never gives up.
 */
export function redialDelay(
	{ failures }: Backoff,
	random: Random,
	retryAfterMs = 0,
): { readonly delayMs: number; readonly next: Backoff } {
	const ceilingMs = Math.min(redialMaxMs, firstRedialMs * 2 ** Math.min(failures, 16));
	return { delayMs: Math.max(retryAfterMs, random.uniform() * ceilingMs), next: { failures: failures + 1 } };
}
