import type { Clock } from "../../src/io/clock.ts";

/** A clock that moves only when told to. */
export interface FakeClock extends Clock {
	/** Moves time on, firing timers in order; lets promises settle after each. */
	advance(ms: number): Promise<void>;
	/** Timers not yet fired or cancelled: a leak shows here. */
	readonly pending: number;
}

/** A fake clock that starts at `startMs` of wall-clock time. */
export function fakeClock(startMs = 1_800_000_000_000): FakeClock {
	let elapsedMs = 0;
	let order = 0;
	const timers = new Map<number, { atMs: number; fn: () => void }>();

	function nextBefore(limitMs: number): [number, { atMs: number; fn: () => void }] | null {
		let best: [number, { atMs: number; fn: () => void }] | null = null;
		for (const entry of timers) {
			if (entry[1].atMs <= limitMs && (best === null || entry[1].atMs < best[1].atMs)) best = entry;
		}
		return best;
	}

	const clock: FakeClock = {
		now: () => startMs + elapsedMs,
		monotonic: () => elapsedMs,
		after(delayMs, fn) {
			const id = order++;
			timers.set(id, { atMs: elapsedMs + Math.max(0, delayMs), fn });
			return () => timers.delete(id);
		},
		sleep(delayMs, signal) {
			return new Promise((resolve, reject) => {
				if (signal?.aborted) return reject(signal.reason);
				const cancel = clock.after(delayMs, () => {
					signal?.removeEventListener("abort", abort);
					resolve();
				});
				function abort() {
					cancel();
					reject(signal?.reason);
				}
				signal?.addEventListener("abort", abort, { once: true });
			});
		},
		async advance(ms) {
			const limitMs = elapsedMs + ms;
			await settle();
			for (let due = nextBefore(limitMs); due !== null; due = nextBefore(limitMs)) {
				timers.delete(due[0]);
				elapsedMs = Math.max(elapsedMs, due[1].atMs);
				due[1].fn();
				await settle();
			}
			elapsedMs = limitMs;
			await settle();
		},
		get pending() {
			return timers.size;
		},
	};
	return clock;
}

/** Lets everything that is ready run: promises and immediates. */
export async function settle(rounds = 8): Promise<void> {
	for (let i = 0; i < rounds; i++) await new Promise((resolve) => setImmediate(resolve));
}
