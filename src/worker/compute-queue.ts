import { KvasirError } from "../errors.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import type { Clock } from "../io/clock.ts";
import type { Dispatch, Offer } from "../protocol/messages.ts";
import { bytesBothWays, type Refusal, rowsOf } from "./dispatch-check.ts";

/** What became of a dispatch. */
export type Computed =
	| { readonly vectors: Float32Array; readonly computeUs: number }
	| { readonly refusal: Refusal; readonly cause?: unknown };

interface Job {
	readonly dispatch: Dispatch;
	readonly bytes: number;
	readonly arrivedMs: number;
	readonly done: (computed: Computed) => void;
	cancelled: boolean;
}

export interface ComputeQueueParts {
	readonly engine: Pick<ExpertEngine, "compute">;
	readonly hidden: number;
	readonly limits: Offer;
	readonly clock: Clock;
}

/** Batches the engine has at once: it never waits for our thread between two. */
const computingMax = 2;

/**
 * First come, first served, within the agreed limits, in which what was cancelled no longer counts, here as at the backbone; what is
 * past its deadline is never begun.
 */
export class ComputeQueue {
	readonly #parts: ComputeQueueParts;
	readonly #waiting: Job[] = [];
	readonly #jobs = new Map<number, Job>();
	#computing = 0;
	/** Of the jobs that count. */
	#dispatches = 0;
	#bytes = 0;

	constructor(parts: ComputeQueueParts) {
		this.#parts = parts;
	}

	/** Dispatches accepted and not yet answered. */
	get size(): number {
		return this.#jobs.size;
	}

	/** Calls `done` once, unless it refuses right here. */
	add(dispatch: Dispatch, done: (computed: Computed) => void): Refusal | null {
		const { limits, hidden, clock } = this.#parts;
		const bytes = bytesBothWays(dispatch, hidden);
		if (this.#dispatches >= limits.dispatchesMax) return { code: "overloaded", text: `${this.#dispatches} dispatches` };
		if (this.#bytes + bytes > limits.inFlightBytesMax) return { code: "overloaded", text: `${this.#bytes} bytes` };
		const job = { dispatch, bytes, arrivedMs: clock.monotonic(), done, cancelled: false };
		this.#jobs.set(dispatch.id, job);
		this.#dispatches++;
		this.#bytes += bytes;
		this.#waiting.push(job);
		this.#pump();
		return null;
	}

	/** One that waits is refused at once; one that is being computed is answered all the same while its deadline lasts: it is paid. */
	cancel(id: number): void {
		const job = this.#jobs.get(id);
		if (job === undefined || job.cancelled) return;
		job.cancelled = true;
		this.#free(job);
		const waiting = this.#waiting.indexOf(job);
		if (waiting === -1) return;
		this.#waiting.splice(waiting, 1);
		this.#finish(job, { refusal: cancelled });
	}

	/** Forgets everything, silently: the link is gone. */
	clear(): void {
		this.#waiting.length = 0;
		this.#jobs.clear();
		this.#dispatches = 0;
		this.#bytes = 0;
	}

	#pump(): void {
		while (this.#computing < computingMax) {
			const job = this.#waiting.shift();
			if (job === undefined) return;
			if (this.#isLate(job)) {
				const waitedMs = Math.round(this.#parts.clock.monotonic() - job.arrivedMs);
				this.#finish(job, { refusal: { code: "deadline", text: `${waitedMs} ms in the queue` } });
				continue;
			}
			this.#computing++;
			this.#compute(job).then((computed) => {
				this.#computing--;
				this.#finish(job, job.cancelled && this.#isLate(job) ? { refusal: cancelled } : computed);
				this.#pump();
			});
		}
	}

	#isLate({ arrivedMs, dispatch }: Job): boolean {
		return this.#parts.clock.monotonic() - arrivedMs > dispatch.deadlineMs;
	}

	async #compute({ dispatch }: Job): Promise<Computed> {
		const { engine, hidden, clock } = this.#parts;
		const { layer, rowCount, rowIndex, expert, weight, mode } = dispatch;
		const startedMs = clock.monotonic();
		try {
			const rows = rowsOf(dispatch, hidden);
			const batch = { layer, rowCount, rows, rowIndex, expert };
			const vectors = await engine.compute(mode === 1 ? { ...batch, weight } : batch);
			if (vectors.length !== (mode === 1 ? rowCount : expert.length) * hidden) {
				throw new KvasirError("engine_failed", `Cannot answer: the engine gave ${vectors.length} values`);
			}
			return { vectors, computeUs: Math.round((clock.monotonic() - startedMs) * 1000) };
		} catch (cause) {
			return { refusal: refusalOf(cause), cause };
		}
	}

	#finish(job: Job, computed: Computed): void {
		// Cleared meanwhile, or its id taken by a later session's job: nobody waits for it.
		if (this.#jobs.get(job.dispatch.id) !== job) return;
		this.#jobs.delete(job.dispatch.id);
		if (!job.cancelled) this.#free(job);
		job.done(computed);
	}

	#free({ bytes }: Job): void {
		this.#dispatches--;
		this.#bytes -= bytes;
	}
}

const cancelled: Refusal = { code: "cancelled", text: "" };

function refusalOf(cause: unknown): Refusal {
	if (cause instanceof KvasirError) {
		if (cause.code === "bounds" || cause.code === "malformed") return { code: "bounds", text: cause.message };
		if (cause.code === "non_finite") {
			return { code: cause.facts.where === "row" ? "non_finite_row" : "non_finite_result", text: cause.message };
		}
	}
	return { code: "engine_failed", text: cause instanceof Error ? cause.message : String(cause) };
}
