import type { Clock } from "../io/clock.ts";

/** Resolves with true when `promise` settles within `ms`, else with false; leaves no timer behind. */
export function within(promise: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
	return new Promise((resolve) => {
		const cancel = clock.after(ms, () => resolve(false));
		const settled = () => {
			cancel();
			resolve(true);
		};
		promise.then(settled, settled);
	});
}
