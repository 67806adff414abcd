import type { Clock } from "../io/clock.ts";

/** Whose clock is wrong nobody knows; what a server signs by is what counts for it. */
export interface ServerTime {
	/** Our clock, corrected by what the server said. */
	readonly clock: Clock;
	/** Reads `X-Kvasir-Time` of a 401; true when it corrected the clock, and the request is worth another try. */
	learn(headers: Readonly<Record<string, string | string[] | undefined>>): boolean;
}

/** Signing for one server that calls clocks wrong which are more than a minute from its own. */
export function serverTime(clock: Clock): ServerTime {
	let offsetMs = 0;
	return {
		clock: { ...clock, now: () => clock.now() + offsetMs },
		learn(headers) {
			const seconds = Number(headers["x-kvasir-time"] ?? Number.NaN);
			if (!Number.isSafeInteger(seconds)) return false;
			const before = offsetMs;
			offsetMs = seconds * 1000 - clock.now();
			return Math.abs(offsetMs - before) > 1000;
		},
	};
}
