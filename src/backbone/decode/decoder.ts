import { KvasirError } from "../../errors.ts";
import type { MatrixGroup } from "../../experts/matrices.ts";
import type { Model } from "../../model/model.ts";
import type { Embedding } from "./embedding.ts";
import type { ExpertBlock } from "./expert-block.ts";
import type { LocalExperts } from "./local-experts.ts";
import type { Mixer } from "./mixer.ts";
import type { RemoteLayers } from "./remote-layers.ts";
import { addRows, namingLayer, normRows, requireFinite } from "./rows.ts";
import { Sequence } from "./sequence.ts";
import { type Chunk, layOutStep, type Step } from "./step.ts";
import type { StepTimes, Stopwatch } from "./step-times.ts";
import type { TextMemory } from "./text-memory.ts";

/** One layer, loaded. */
export interface Layer {
	readonly mixerNorm: Float32Array;
	readonly mixer: Mixer;
	readonly expertNorm: Float32Array;
	readonly experts: ExpertBlock;
}

/** A model's loaded parts; open-decoder.ts loads them. */
export interface DecoderParts {
	readonly model: Model;
	readonly embedding: Embedding;
	readonly layers: readonly Layer[];
	readonly outputNorm: Float32Array;
	readonly head: MatrixGroup;
	readonly local: LocalExperts;
	readonly remote: RemoteLayers | null;
	readonly stopwatch: Stopwatch;
	readonly memory: TextMemory;
	close(): Promise<void>;
}

/** The forward pass of a model (qwen35moe.md section 2), one step at a time. */
export class Decoder {
	readonly model: Model;
	/** The local experts, also for audits. */
	readonly local: LocalExperts;
	/** Who is asked for experts elsewhere, and what came of it; null: nobody. */
	readonly remote: RemoteLayers | null;
	readonly #parts: DecoderParts;
	#nextSequence = 1;

	constructor(parts: DecoderParts) {
		this.#parts = parts;
		this.model = parts.model;
		this.local = parts.local;
		this.remote = parts.remote;
	}

	/** Where the time of all steps so far went. */
	get times(): StepTimes {
		return { ...this.#parts.stopwatch.times };
	}

	/** Bytes that the sequences remember. */
	get bytesRemembered(): number {
		return this.#parts.memory.bytesHeld;
	}

	/** A sequence without tokens; whoever asks for it releases it. Throws `out_of_memory`. */
	newSequence(): Sequence {
		return new Sequence(this.#nextSequence++, this.model.shape, this.#parts.memory);
	}

	/**
	 * Decodes the chunks of several sequences as one step: their rows share each layer's matrices and expert batch.
	 * Throws `bounds` for a token the model does not have or beyond its context, and
	 * `out_of_memory`, before anything is decoded; `non_finite` naming the place; `remote_required`.
	 * A step that failed after it began leaves its sequences unusable.
	 *
	 * @returns per chunk its wanted logits: (tokens, vocab), (1, vocab) or nothing
	 */
	async forward(chunks: readonly Chunk[]): Promise<Float32Array[]> {
		for (const chunk of chunks) checkChunk(chunk, this.model);
		for (const { sequence, tokens } of chunks) sequence.makeRoom(tokens.length);
		const { stopwatch } = this.#parts;
		stopwatch.start();
		try {
			return await this.#decode(chunks);
		} finally {
			stopwatch.stop();
		}
	}

	async close(): Promise<void> {
		await this.#parts.close();
	}

	async #decode(chunks: readonly Chunk[]): Promise<Float32Array[]> {
		const { embedding, layers, stopwatch } = this.#parts;
		const { hidden, rmsEpsilon } = this.model.shape;
		const step = layOutStep(chunks);
		const residual = new Float32Array(step.count * hidden);
		for (const [i, { tokens }] of chunks.entries()) {
			await embedding.write(tokens, residual, step.spans[i]!.firstRow);
		}
		const rows = new Float32Array(residual.length);
		for (const [index, layer] of layers.entries()) {
			try {
				normRows(residual, step.count, layer.mixerNorm, rmsEpsilon, rows, "its input");
				stopwatch.lap("restMs");
				await this.#addMixer(residual, rows, layer.mixer, step);
				normRows(residual, step.count, layer.expertNorm, rmsEpsilon, rows, "the sum with its mixer's output");
				stopwatch.lap("restMs");
				await layer.experts.addTo(residual, rows, step);
			} catch (error) {
				throw namingLayer(error, index);
			}
		}
		for (const { sequence, tokens } of chunks) sequence.length += tokens.length;
		return this.#logits(residual, step);
	}

	/** Projects all rows, mixes them, projects back, and adds to the residual. */
	async #addMixer(residual: Float32Array, rows: Float32Array, mixer: Mixer, step: Step): Promise<void> {
		const { stopwatch } = this.#parts;
		const projected = await mixer.projections.input.multiply(rows, step.count);
		stopwatch.lap("matricesMs");
		const mixed = new Float32Array(step.count * mixer.width);
		mixer.mix(projected, step.spans, mixed);
		stopwatch.lap("mixerMs");
		const [output] = await mixer.projections.output.multiply(mixed, step.count);
		stopwatch.lap("matricesMs");
		addRows(residual, output!, residual.length);
	}

	/** The head reads only the rows whose logits are wanted. */
	async #logits(residual: Float32Array, step: Step): Promise<Float32Array[]> {
		const { head, outputNorm, stopwatch } = this.#parts;
		const { hidden, vocab, rmsEpsilon } = this.model.shape;
		const wanted = step.spans.map((span, i) => wantedRows(step.chunks[i]!, span.firstRow));
		const wantedCount = wanted.reduce((sum, { count }) => sum + count, 0);
		if (wantedCount === 0) return wanted.map(() => new Float32Array(0));
		const rows = new Float32Array(wantedCount * hidden);
		let first = 0;
		for (const { start, count } of wanted) {
			rows.set(residual.subarray(start * hidden, (start + count) * hidden), first * hidden);
			first += count;
		}
		normRows(rows, wantedCount, outputNorm, rmsEpsilon, rows, "the output of the last layer");
		const [logits] = await head.multiply(rows, wantedCount);
		requireFinite(logits!, "a logit");
		stopwatch.lap("headMs");
		let next = 0;
		return wanted.map(({ count }) => {
			const part = logits!.subarray(next * vocab, (next + count) * vocab);
			next += count;
			return part;
		});
	}
}

function wantedRows({ wantLogits, tokens }: Chunk, firstRow: number): { start: number; count: number } {
	if (wantLogits === "all") return { start: firstRow, count: tokens.length };
	return { start: firstRow + tokens.length - 1, count: wantLogits === "last" ? 1 : 0 };
}

function checkChunk({ sequence, tokens }: Chunk, { shape }: Model): void {
	const most = shape.contextLength - sequence.length;
	if (tokens.length < 1 || tokens.length > most) {
		const state = `${tokens.length} tokens after ${sequence.length}, in a context of ${shape.contextLength}`;
		throw new KvasirError("bounds", `Cannot decode: ${state}`);
	}
	const alien = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= shape.vocab);
	if (alien !== undefined) {
		throw new KvasirError("bounds", `Cannot decode token ${alien}: the vocabulary has ${shape.vocab}`);
	}
}
