import { KvasirError } from "../../errors.ts";
import type { Decoder } from "./decoder.ts";
import { checkRequest, Generation, type GenerationRequest, type GenerationResult } from "./generation.ts";
import type { Chunk } from "./step.ts";

export interface SchedulerOptions {
	/** Prompt tokens of one text per step. @default 64 */
	readonly prefillChunk?: number;
	/** Texts decoded together. @default 16 */
	readonly activeMost?: number;
	/** Steps under way at once, at most: while the experts of one are computed elsewhere, another goes on here. @default 1 */
	readonly stepsMost?: number;
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

/** Texts that make another step worth it: with fewer, the same weights are read once more for a few rows. */
const textsPerStep = 32;

const neverBegun: GenerationResult = {
	sequence: null,
	tokens: [],
	finish: "aborted",
	positions: 0,
	logits: null,
	logitsSha256: null,
};

/**
 * Decodes several texts together: a step takes the next rows of every active one that is in no other step, or of its share of them where
 * several steps may be under way. A finished text makes room at once.
 */
export class Scheduler {
	readonly #decoder: Decoder;
	readonly #options: Required<SchedulerOptions>;
	readonly #waiting: Job[] = [];
	readonly #active = new Map<Generation, Job>();
	/** The steps under way, and whose rows are in one. */
	readonly #steps = new Set<Promise<void>>();
	readonly #stepping = new Set<Generation>();
	#isWoken = false;
	#closed = false;

	constructor(decoder: Decoder, options: SchedulerOptions = {}) {
		this.#decoder = decoder;
		this.#options = { prefillChunk: 64, activeMost: 16, stepsMost: 1, waitingMost: 256, ...options };
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
			this.#wake();
		});
	}

	/** Ends every text, after the steps under way, as aborted. */
	async close(): Promise<void> {
		this.#closed = true;
		for (const generation of this.#active.keys()) generation.abort();
		while (this.#steps.size > 0) await Promise.all(this.#steps);
		this.#admit();
	}

	/** Texts that are asked for in one turn begin in one step. */
	#wake(): void {
		if (this.#isWoken) return;
		this.#isWoken = true;
		queueMicrotask(() => {
			this.#isWoken = false;
			this.#begin();
		});
	}

	/** Begins the steps that may be under way now. */
	#begin(): void {
		this.#admit();
		const steps = Math.max(1, Math.min(this.#options.stepsMost, Math.floor(this.#active.size / textsPerStep)));
		const share = Math.ceil(this.#active.size / steps);
		while (this.#steps.size < steps) {
			const generations = [...this.#active.keys()]
				.filter((generation) => !this.#stepping.has(generation))
				.slice(0, share);
			if (generations.length === 0) return;
			const step = this.#step(generations).finally(() => {
				for (const generation of generations) this.#stepping.delete(generation);
				this.#steps.delete(step);
				this.#begin();
			});
			for (const generation of generations) this.#stepping.add(generation);
			this.#steps.add(step);
		}
	}

	/** Retires what was aborted, and lets waiting texts in. */
	#admit(): void {
		for (const [generation, job] of this.#active) {
			if (this.#stepping.has(generation)) continue;
			if (job.hooks.signal?.aborted) generation.abort();
			this.#retire(generation, job);
		}
		for (const job of this.#waiting.splice(0)) {
			const isOver = this.#closed || job.hooks.signal?.aborted;
			if (isOver) job.resolve(neverBegun);
			else if (this.#active.size < this.#options.activeMost) this.#start(job);
			else this.#waiting.push(job);
		}
	}

	#start(job: Job): void {
		try {
			const { model } = this.#decoder;
			const onToken = job.hooks.onToken ?? (() => {});
			this.#active.set(new Generation(job.request, this.#decoder.newSequence(), model.shape, onToken), job);
		} catch (error) {
			job.reject(error); // no memory for another sequence
		}
	}

	/** One step of these texts; never rejects: what a step throws fails its texts. */
	async #step(generations: readonly Generation[]): Promise<void> {
		const chunks = new Map<Generation, Chunk>();
		for (const generation of generations) {
			const chunk = generation.nextChunk(this.#options.prefillChunk);
			try {
				chunk.sequence.makeRoom(chunk.tokens.length);
				chunks.set(generation, chunk);
			} catch (error) {
				this.#fail(generation, error); // the others go on
			}
		}
		if (chunks.size === 0) return;
		try {
			const logits = await this.#decoder.forward([...chunks.values()]);
			for (const [i, generation] of [...chunks.keys()].entries()) generation.take(logits[i]!);
		} catch (error) {
			for (const generation of chunks.keys()) this.#fail(generation, error);
		}
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
