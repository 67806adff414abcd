/// <reference types="@webgpu/types" />
import { KvasirError } from "../../errors.ts";
import type { ExpertWeights, WeightMatrix } from "../../model/weight-matrix.ts";
import type { ExpertBatch, ExpertEngine } from "../engine.ts";
import type { OpenDevice } from "./adapters.ts";
import { DeviceArena } from "./arena.ts";
import { deviceWords, packWeights } from "./device-weights.ts";
import { Pipelines } from "./pipelines.ts";
import type { DeviceMatrix } from "./plan.ts";
import { Scratch } from "./scratch.ts";
import { Submission } from "./submission.ts";

interface DeviceExpert {
	readonly gate: DeviceMatrix;
	readonly up: DeviceMatrix;
	readonly down: DeviceMatrix;
}

/** Pairs of one submission at most, so that no submission holds the device (or a watchdog's patience) for long. */
const pairsPerSubmission = 1024;

/**
 * canonical-1 on a graphics device: the same bits as the WASM kernels, since every step runs on integers.
 * Gate, up, silu, quantisation, down and the whole-row sum of all pairs are one submission; only rows and results cross.
 */
export class GpuEngine implements ExpertEngine {
	readonly engineClass = "canonical-1";
	readonly #open: OpenDevice;
	readonly #arena: DeviceArena;
	readonly #pipelines: Pipelines;
	readonly #scratch: Scratch;
	readonly #experts = new Map<string, DeviceExpert>();
	#words = 0;
	#hidden = 0;

	/** @param memoryBytes of the device, for experts */
	constructor(open: OpenDevice, memoryBytes: number) {
		this.#open = open;
		this.#arena = new DeviceArena(open.device, memoryBytes);
		const packedDot = open.gpu.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product") ?? false;
		this.#pipelines = new Pipelines(open.device, packedDot);
		this.#scratch = new Scratch(open.device);
	}

	get bytesHeld(): number {
		return this.#words * 4;
	}

	has(layer: number, expert: number): boolean {
		return this.#experts.has(`${layer}/${expert}`);
	}

	async load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
		await this.unload(layer, expert);
		const { gate, up, down } = weights;
		const words = [gate, up, down].map(deviceWords);
		const total = words.reduce((sum, each) => sum + each, 0);
		const slice = await this.#arena.allocate(total);
		const packed = new Uint8Array(total * 4);
		let word = 0;
		const place = (matrix: WeightMatrix, size: number): DeviceMatrix => {
			packWeights(matrix, packed.subarray(word * 4, (word + size) * 4));
			const placed = { chunk: slice.chunk, word: slice.word + word, words: size };
			word += size;
			return { type: matrix.type, outputs: matrix.outputs, inputs: matrix.inputs, slice: placed };
		};
		const held = { gate: place(gate, words[0]!), up: place(up, words[1]!), down: place(down, words[2]!) };
		this.#open.device.queue.writeBuffer(slice.chunk.buffer, slice.word * 4, packed);
		this.#experts.set(`${layer}/${expert}`, held);
		this.#hidden = down.outputs;
		this.#words += total;
	}

	async unload(layer: number, expert: number): Promise<void> {
		const held = this.#experts.get(`${layer}/${expert}`);
		if (!held) return;
		const words = [held.gate, held.up, held.down].reduce((sum, { slice }) => sum + slice.words, 0);
		this.#arena.release({ ...held.gate.slice, words });
		this.#experts.delete(`${layer}/${expert}`);
		this.#words -= words;
	}

	/** One at a time: the caller waits for one before it asks for the next. */
	async compute(batch: ExpertBatch): Promise<Float32Array> {
		const { rowIndex, rowCount, weight } = batch;
		const pairs = rowIndex.length;
		const parts: { at: number; vectors: Float32Array }[] = [];
		for (let from = 0; from < pairs; ) {
			let to = Math.min(pairs, from + pairsPerSubmission);
			// A row whose pairs are to be summed is never cut in two.
			while (weight && to < pairs && rowIndex[to] === rowIndex[to - 1]) to++;
			parts.push({ at: weight ? rowIndex[from]! : from, vectors: await this.#submit(batch, from, to) });
			from = to;
		}
		return assembled(parts, this.#hidden, weight ? rowCount : pairs);
	}

	async close(): Promise<void> {
		this.#open.device.destroy();
	}

	async #submit(batch: ExpertBatch, from: number, to: number): Promise<Float32Array> {
		const experts = Array.from(batch.expert.subarray(from, to), (id) => this.#expert(batch.layer, id));
		const pairs = to - from;
		const { gate, down } = experts[0]!;
		const firstRow = batch.rowIndex[from]!;
		const rowCount = batch.rowIndex[to - 1]! - firstRow + 1;
		// A slot of 2 words and at most a job of 3 for each product; starts and weights of the sum.
		const planWords = pairs * 3 * 5 + pairs + rowCount + 1;
		const submission = new Submission(this.#open.device, this.#pipelines, this.#scratch, planWords);

		const x = submission.enter("x", batch.rows, gate.inputs, firstRow, rowCount);
		const gated = this.#scratch.get("gated", pairs * gate.outputs * 8);
		const products = (name: "gate" | "up", firstTo: number) =>
			experts.map((expert, pair) => ({
				matrix: expert[name],
				from: batch.rowIndex[from + pair]! - firstRow,
				to: firstTo + pair,
			}));
		submission.multiply([...products("gate", 0), ...products("up", pairs)], x, gated);

		const h = submission.rows("h", down.inputs, pairs);
		submission.activate(h, gated);
		const vectors = this.#scratch.get("vectors", pairs * down.outputs * 4);
		const downs = experts.map((expert, pair) => ({ matrix: expert.down, from: pair, to: pair }));
		submission.multiply(downs, h, vectors);

		if (!batch.weight) return checked(await submission.finish(vectors, pairs * down.outputs));
		const first = rowStarts(batch.rowIndex.subarray(from, to), firstRow, rowCount);
		const summed = submission.sumRows(vectors, down.outputs, first, batch.weight.subarray(from, to));
		return checked(await submission.finish(summed, rowCount * down.outputs));
	}

	#expert(layer: number, id: number): DeviceExpert {
		const held = this.#experts.get(`${layer}/${id}`);
		if (!held)
			throw new KvasirError("engine_failed", `Cannot compute expert ${id} of layer ${layer}: not on the device`);
		return held;
	}
}

function checked({ values, flags }: { values: Float32Array; flags: Uint32Array }): Float32Array {
	if (flags[0]) throw new KvasirError("non_finite", "Cannot compute: a row is not finite", { facts: { where: "row" } });
	if (flags[1]) {
		throw new KvasirError("non_finite", "Cannot compute: a result is not finite", { facts: { where: "result" } });
	}
	return values;
}

/** Where the pairs of each row begin, and where the last ends. */
function rowStarts(rowIndex: Uint16Array, firstRow: number, rowCount: number): Uint32Array {
	const starts = new Uint32Array(rowCount + 1);
	for (const row of rowIndex) starts[row - firstRow + 1]!++;
	for (let row = 0; row < rowCount; row++) starts[row + 1]! += starts[row]!;
	return starts;
}

/** Puts the parts of a result in their places; a row without pairs stays zero. */
function assembled(
	parts: readonly { at: number; vectors: Float32Array }[],
	hidden: number,
	vectors: number,
): Float32Array {
	if (parts.length === 1 && parts[0]!.vectors.length === hidden * vectors) return parts[0]!.vectors;
	const all = new Float32Array(hidden * vectors);
	for (const { at, vectors } of parts) all.set(vectors, at * hidden);
	return all;
}
