import type { WorkSpace } from "./work-space.ts";

/** A job as a unit sees it. */
export interface JobView {
	/** The job's words: its header and tables. */
	readonly words: Int32Array;
	readonly control: Int32Array;
	space(memory: number): WorkSpace;
	/** Waits until a counter has reached `count`, or the job has failed. */
	waitFor(counters: Int32Array, index: number, count: number): void;
	failed(): boolean;
}
