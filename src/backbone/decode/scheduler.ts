import { KvasirError } from "../../errors.ts";
import type { Decoder } from "./decoder.ts";
import { checkRequest, Generation, type GenerationRequest, type GenerationResult } from "./generation.ts";
import type { Chunk } from "./step.ts";

export interface SchedulerOptions {
	/** Prompt tokens of one text per step. @default 64 */
	readonly prefillChunk?: number;
	/** Texts decoded together. @default 16 */
	readonly activeMost?: number;
	/** Texts waiting for their turn; more are refused. @default 256 */
	readonly waitingMost?: number;
}

export interface GenerationHooks {
	/** Called for each token as it is chosen. */
	readonly onToken?: (token: number, index: number) => void;
	/** Ends the text where it is; the result says `aborted`. */
	readonly signal?: AbortSignal;
}

interface Job {
	readonly request: GenerationRequest;
	readonly hooks: GenerationHooks;
	readonly resolve: (result: GenerationResult) => void;
	readonly reject: (error: unknown) => void;
}

const neverBegun: GenerationResult = {
	sequence: null,
	tokens: [],
	finish: "aborted",
	positions: 0,
	logits: null,
	logitsSha256: null,
};

/** Decodes several texts together: each step takes the next rows of every active one, and a finished text makes room at once. */
export class Scheduler {
	readonly #decoder: Decoder;
	readonly #options: Required<SchedulerOptions>;
	readonly #waiting: Job[] = [];
	readonly #active = new Map<Generation, Job>();
	#running: Promise<void> | null = null;
	#closed = false;

	constructor(decoder: Decoder, options: SchedulerOptions = {}) {
		this.#decoder = decoder;
		this.#options = { prefillChunk: 64, activeMost: 16, waitingMost: 256, ...options };
	}

	/** Generates one text. Throws `usage` or `bounds` for a request that cannot be, `refused` when too many wait, and what decoding throws. */
	async generate(request: GenerationRequest, hooks: GenerationHooks = {}): Promise<GenerationResult> {
		checkRequest(request, this.#decoder.model.shape);
		if (this.#closed) throw new KvasirError("closed", "Cannot generate: the decoder is closing");
		if (this.#waiting.length >= this.#options.waitingMost) {
			throw new KvasirError("refused", `Cannot generate: ${this.#waiting.length} texts are waiting already`);
		}
		return new Promise((resolve, reject) => {
			this.#waiting.push({ request, hooks, resolve, reject });
			this.#running ??= this.#run();
		});
	}

	/** Ends every text, after the step in progress, as aborted. */
	async close(): Promise<void> {
		this.#closed = true;
		for (const generation of this.#active.keys()) generation.abort();
		await this.#running;
	}

	async #run(): Promise<void> {
		await null; // so that #running is set before it is cleared
		for (this.#admit(); this.#active.size > 0; this.#admit()) {
			try {
				await this.#step();
			} catch (error) {
				for (const generation of [...this.#active.keys()]) this.#fail(generation, error);
			}
		}
		this.#running = null; // in the same turn as the last look at the waiting texts
	}

	/** Retires what was aborted, and lets waiting texts in. */
	#admit(): void {
		for (const [generation, job] of this.#active) {
			if (job.hooks.signal?.aborted) generation.abort();
			this.#retire(generation, job);
		}
		for (const job of this.#waiting.splice(0)) {
			const isOver = this.#closed || job.hooks.signal?.aborted;
			if (isOver) job.resolve(neverBegun);
			else if (this.#active.size < this.#options.activeMost) this.#begin(job);
			else this.#waiting.push(job);
		}
	}

	#begin(job: Job): void {
		try {
			const { model } = this.#decoder;
			const onToken = job.hooks.onToken ?? (() => {});
			this.#active.set(new Generation(job.request, this.#decoder.newSequence(), model.shape, onToken), job);
		} catch (error) {
			job.reject(error); // no memory for another sequence
		}
	}

	async #step(): Promise<void> {
		const generations: Generation[] = [];
		const chunks: Chunk[] = [];
		for (const generation of this.#active.keys()) {
			const chunk = generation.nextChunk(this.#options.prefillChunk);
			try {
				chunk.sequence.makeRoom(chunk.tokens.length);
			} catch (error) {
				this.#fail(generation, error); // the others go on
				continue;
			}
			generations.push(generation);
			chunks.push(chunk);
		}
		if (chunks.length === 0) return;
		const logits = await this.#decoder.forward(chunks);
		for (const [i, generation] of generations.entries()) generation.take(logits[i]!);
	}

	#fail(generation: Generation, error: unknown): void {
		this.#active.get(generation)!.reject(error);
		this.#active.delete(generation);
		generation.release();
	}

	#retire(generation: Generation, job: Job): void {
		if (!generation.finished) return;
		this.#active.delete(generation);
		generation.release();
		job.resolve(generation.result());
	}
}
