import { KvasirError } from "../errors.ts";
import type { OnnxModel } from "../model/onnx/onnx-model.ts";
import type { ExpertWeights } from "../model/weight-matrix.ts";
import type { ExpertBatch, ExpertEngine, Rows } from "./engine.ts";
import { allFinite } from "./finite.ts";
import {
	type InferenceSession,
	type MakeTensor,
	openSession,
	type SessionOptions,
	tensorConstructor,
} from "./onnxruntime.ts";
import { weightedSum } from "./weighted-sum.ts";

/** Values of a row that share a scale in dtype q14 (numerics.md section 2). */
const activationBlock = 256;

interface HeldExpert {
	readonly session: InferenceSession;
	readonly bytes: number;
}

/** What tells one engine of onnxruntime sessions from another. */
export interface SessionEngineParts {
	readonly engineClass: string;
	/** Rows are vectors of this many values. */
	readonly hidden: number;
	/** @default no limit */
	readonly memoryBytes?: number;
	/** An expert as a graph of `x` (rows, hidden) -> `y` (rows, hidden). */
	graph(weights: ExpertWeights): OnnxModel;
	/** Bytes an expert takes once loaded. */
	bytesOf(weights: ExpertWeights): number;
	readonly session?: SessionOptions;
}

/** An engine with one onnxruntime session an expert, all on the calling thread. */
export async function openSessionEngine(parts: SessionEngineParts): Promise<ExpertEngine> {
	return new SessionEngine(await tensorConstructor(), parts);
}

class SessionEngine implements ExpertEngine {
	readonly engineClass: string;
	readonly #Tensor: MakeTensor;
	readonly #parts: SessionEngineParts;
	readonly #hidden: number;
	readonly #memoryBytes: number;
	readonly #held = new Map<number, HeldExpert>();
	#bytesHeld = 0;

	constructor(Tensor: MakeTensor, parts: SessionEngineParts) {
		this.#Tensor = Tensor;
		this.#parts = parts;
		this.engineClass = parts.engineClass;
		this.#hidden = parts.hidden;
		this.#memoryBytes = parts.memoryBytes ?? Number.POSITIVE_INFINITY;
	}

	get bytesHeld(): number {
		return this.#bytesHeld;
	}

	has(layer: number, expert: number): boolean {
		return this.#held.has(keyOf(layer, expert));
	}

	async load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
		this.#checkShape(weights);
		const bytes = this.#parts.bytesOf(weights);
		await this.unload(layer, expert);
		if (this.#bytesHeld + bytes > this.#memoryBytes) {
			const state = `${bytes} bytes more than the ${this.#bytesHeld} held exceed the limit of ${this.#memoryBytes}`;
			throw new KvasirError("out_of_memory", `Cannot load expert ${expert} of layer ${layer}: ${state}`);
		}
		const session = await openSession(this.#parts.graph(weights), this.#parts.session);
		this.#held.set(keyOf(layer, expert), { session, bytes });
		this.#bytesHeld += bytes;
	}

	async unload(layer: number, expert: number): Promise<void> {
		const held = this.#held.get(keyOf(layer, expert));
		if (!held) return;
		this.#held.delete(keyOf(layer, expert));
		this.#bytesHeld -= held.bytes;
		await held.session.release();
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		const hidden = this.#hidden;
		const rows = plainRows(batch.rows, batch.rowCount, hidden);
		if (!allFinite(rows)) throw nonFinite(batch.layer, "row");
		const vectors = new Float32Array(batch.expert.length * hidden);
		for (const [expert, pairs] of pairsByExpert(batch.expert)) {
			const answer = await this.#computeExpert(batch, rows, expert, pairs);
			for (let i = 0; i < pairs.length; i++) {
				vectors.set(answer.subarray(i * hidden, (i + 1) * hidden), pairs[i]! * hidden);
			}
		}
		if (!allFinite(vectors)) throw nonFinite(batch.layer, "result");
		return batch.weight ? sumRows(vectors, batch, batch.weight, hidden) : vectors;
	}

	async close(): Promise<void> {
		for (const { session } of this.#held.values()) await session.release();
		this.#held.clear();
		this.#bytesHeld = 0;
	}

	/** (pairs, hidden): one expert over the rows of its pairs. */
	async #computeExpert(
		batch: ExpertBatch,
		rows: Float32Array,
		expert: number,
		pairs: readonly number[],
	): Promise<Float32Array> {
		const held = this.#held.get(keyOf(batch.layer, expert));
		if (!held) {
			throw new KvasirError(
				"engine_failed",
				`Cannot compute expert ${expert} of layer ${batch.layer}: it is not loaded`,
			);
		}
		const hidden = this.#hidden;
		let input = rows.subarray(0, hidden);
		if (pairs.length > 1 || batch.rowCount > 1) {
			input = new Float32Array(pairs.length * hidden);
			for (let i = 0; i < pairs.length; i++) {
				const row = batch.rowIndex[pairs[i]!]!;
				input.set(rows.subarray(row * hidden, (row + 1) * hidden), i * hidden);
			}
		}
		const x = new this.#Tensor("float32", input, [pairs.length, hidden]);
		const { y } = await held.session.run({ x });
		return y!.data as Float32Array;
	}

	#checkShape({ gate, up, down }: ExpertWeights): void {
		const hidden = this.#hidden;
		const fits =
			gate.inputs === hidden && up.inputs === hidden && down.outputs === hidden && gate.outputs === up.outputs;
		if (fits && down.inputs === gate.outputs) return;
		const state = `${gate.outputs} x ${gate.inputs}, ${up.outputs} x ${up.inputs}, ${down.outputs} x ${down.inputs}`;
		throw new KvasirError("unsupported_shape", `Cannot load an expert for rows of ${hidden}: matrices are ${state}`);
	}
}

/** Expert ids are 16 bits wide. */
function keyOf(layer: number, expert: number): number {
	return layer * 2 ** 16 + expert;
}

/** The pairs of each expert, experts in the order they first appear. */
function pairsByExpert(experts: Uint16Array): Map<number, number[]> {
	const pairs = new Map<number, number[]>();
	for (let pair = 0; pair < experts.length; pair++) {
		const expert = experts[pair]!;
		const list = pairs.get(expert);
		if (list) list.push(pair);
		else pairs.set(expert, [pair]);
	}
	return pairs;
}

/** f32 rows as they are; q14 rows as q * scale. */
function plainRows(rows: Rows, rowCount: number, hidden: number): Float32Array {
	if (rows.dtype === "f32") return rows.values;
	const blocks = Math.ceil(hidden / activationBlock);
	const values = new Float32Array(rowCount * hidden);
	for (let row = 0; row < rowCount; row++) {
		for (let i = 0; i < hidden; i++) {
			const scale = rows.scales[row * blocks + Math.floor(i / activationBlock)]!;
			values[row * hidden + i] = rows.q[row * hidden + i]! * scale;
		}
	}
	return values;
}

/** (rowCount, hidden): the weighted sums of whole rows (mode 1); pairs come ordered by row, then by rank. */
function sumRows(vectors: Float32Array, batch: ExpertBatch, weights: Float32Array, hidden: number): Float32Array {
	const sums = new Float32Array(batch.rowCount * hidden);
	for (let first = 0; first < batch.rowIndex.length; ) {
		const row = batch.rowIndex[first]!;
		let end = first + 1;
		while (end < batch.rowIndex.length && batch.rowIndex[end] === row) end++;
		weightedSum(sums, row * hidden, hidden, vectors, first * hidden, weights, first, end - first);
		first = end;
	}
	if (!allFinite(sums)) throw nonFinite(batch.layer, "result");
	return sums;
}

function nonFinite(layer: number, where: "row" | "result"): KvasirError {
	return new KvasirError("non_finite", `Cannot compute experts of layer ${layer}: a ${where} is not finite`, {
		facts: { layer, where },
	});
}
