/** Bytes a millisecond assumed of a link before anything was measured: 8 Mbit/s, a slow home uplink. */
const startBytesPerMs = 1000;
/** Weight of a new sample in the running averages. */
const sampleWeight = 0.3;
/** Below this many bytes a round trip says nothing about the rate. */
const smallestRateSampleBytes = 16 * 1024;
/** How fast the floor rises again when a path gets longer: a share of the difference for each answer. */
const floorRise = 0.02;

/**
 * How fast one worker answers, measured on its answers: a floor (the round trip of nothing) and a rate
 * (bytes both ways by milliseconds beyond the floor, the worker's compute included). Deadlines, message sizes and the plan read it.
 */
export class LinkPace {
	#bytesPerMs = startBytesPerMs;
	#floorMs: number | null = null;

	get bytesPerMs(): number {
		return this.#bytesPerMs;
	}

	/** Milliseconds of the shortest answers lately; 0 before the first. */
	get floorMs(): number {
		return this.#floorMs ?? 0;
	}

	/** @param bytes both ways, with what was in flight ahead of it; @param elapsedMs from the send to the whole answer */
	answered(bytes: number, elapsedMs: number): void {
		const floor = this.#floorMs;
		this.#floorMs = floor === null || elapsedMs < floor ? elapsedMs : floor + (elapsedMs - floor) * floorRise;
		if (bytes < smallestRateSampleBytes) return;
		const sample = bytes / Math.max(0.5, elapsedMs - (floor ?? elapsedMs / 2));
		this.#bytesPerMs += (sample - this.#bytesPerMs) * sampleWeight;
	}

	/** Milliseconds until an answer is expected when `bytes` (both ways, those ahead included) have to move. */
	expectedMs(bytes: number): number {
		return this.floorMs + bytes / this.#bytesPerMs;
	}
}
