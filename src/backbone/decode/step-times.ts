import type { Clock } from "../../io/clock.ts";

/** Where the time of decode steps went, milliseconds. */
export interface StepTimes {
	/** Delta net and attention between their projections. */
	mixerMs: number;
	/** Projections into and out of the mixers. */
	matricesMs: number;
	/** Router, and the combination of vectors. */
	routerMs: number;
	/** Experts computed here. */
	expertsMs: number;
	/** Waiting for remote experts after everything local was done. */
	waitMs: number;
	/** Output head. */
	headMs: number;
	/** Embedding, norms, residual additions. */
	restMs: number;
}

/** Adds the time since the last lap, of whichever step, to one of the times: of several steps under way no moment counts twice. */
export class Stopwatch {
	readonly times: StepTimes = {
		mixerMs: 0,
		matricesMs: 0,
		routerMs: 0,
		expertsMs: 0,
		waitMs: 0,
		headMs: 0,
		restMs: 0,
	};
	readonly #clock: Pick<Clock, "monotonic">;
	#lapStart: number;
	#underWay = 0;

	constructor(clock: Pick<Clock, "monotonic">) {
		this.#clock = clock;
		this.#lapStart = clock.monotonic();
	}

	/** A step begins; where no other is under way, the time since the last lap belongs to nothing. */
	start(): void {
		if (this.#underWay++ === 0) this.#lapStart = this.#clock.monotonic();
	}

	/** A step is over. */
	stop(): void {
		this.#underWay--;
	}

	lap(name: keyof StepTimes): void {
		const now = this.#clock.monotonic();
		this.times[name] += now - this.#lapStart;
		this.#lapStart = now;
	}
}
