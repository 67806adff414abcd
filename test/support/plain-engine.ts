import { KvasirError } from "../../src/errors.ts";
import type { ExpertBatch, ExpertEngine, Rows } from "../../src/experts/engine.ts";
import { allFinite } from "../../src/experts/finite.ts";
import { weightedSum } from "../../src/experts/weighted-sum.ts";
import { dequantise } from "../../src/model/dequantise.ts";
import type { Model } from "../../src/model/model.ts";
import type { ExpertWeights, WeightMatrix } from "../../src/model/weight-matrix.ts";
import { seededRandom } from "./seeded-random.ts";

/** A real, slow engine for tests: every weight dequantised, plain loops in binary64, no threads, no native code. */
export function plainEngine(engineClass = "f32", expertsMax = Number.POSITIVE_INFINITY): ExpertEngine {
	const experts = new Map<string, ExpertWeights>();
	let bytesHeld = 0;
	const bytesOf = ({ gate, up, down }: ExpertWeights) => gate.bytes.length + up.bytes.length + down.bytes.length;
	const engine: ExpertEngine = {
		engineClass,
		get bytesHeld() {
			return bytesHeld;
		},
		async load(layer, expert, weights) {
			await engine.unload(layer, expert);
			if (experts.size >= expertsMax) throw new KvasirError("out_of_memory", `Cannot load expert ${expert}: full`);
			experts.set(`${layer}:${expert}`, weights);
			bytesHeld += bytesOf(weights);
		},
		async unload(layer, expert) {
			const held = experts.get(`${layer}:${expert}`);
			if (held !== undefined) bytesHeld -= bytesOf(held);
			experts.delete(`${layer}:${expert}`);
		},
		has: (layer, expert) => experts.has(`${layer}:${expert}`),
		async compute(batch) {
			const hidden = experts.get(`${batch.layer}:${batch.expert[0]}`)?.gate.inputs ?? 0;
			const rows = plainRows(batch.rows, hidden);
			if (!allFinite(rows)) throw new KvasirError("non_finite", "Cannot compute: the row", { facts: { where: "row" } });
			const vectors = new Float32Array(batch.expert.length * hidden);
			batch.expert.forEach((expert, pair) => {
				const weights = experts.get(`${batch.layer}:${expert}`);
				if (weights === undefined) throw new KvasirError("engine_failed", `Cannot compute: ${expert} is not loaded`);
				const row = batch.rowIndex[pair]!;
				vectors.set(expertOf(weights, rows.subarray(row * hidden, (row + 1) * hidden)), pair * hidden);
			});
			return batch.weight === undefined ? vectors : summed(batch, vectors, hidden);
		},
		async close() {
			experts.clear();
		},
	};
	return engine;
}

function expertOf({ gate, up, down }: ExpertWeights, x: Float32Array): Float32Array {
	const g = times(gate, x);
	const u = times(up, x);
	return times(
		down,
		g.map((value, i) => (value / (1 + Math.exp(-value))) * u[i]!),
	);
}

function times({ type, bytes, outputs, inputs }: WeightMatrix, x: Float32Array): Float32Array {
	const weights = dequantise(bytes, type);
	return Float32Array.from({ length: outputs }, (_, row) => {
		let sum = 0;
		for (let i = 0; i < inputs; i++) sum += weights[row * inputs + i]! * x[i]!;
		return sum;
	});
}

function plainRows(rows: Rows, hidden: number): Float32Array {
	if (rows.dtype === "f32") return rows.values;
	const blocks = Math.ceil(hidden / 256);
	return Float32Array.from(rows.q, (q, i) => {
		const row = Math.floor(i / hidden);
		return q * rows.scales[row * blocks + Math.floor((i % hidden) / 256)]!;
	});
}

function summed({ rowCount, weight }: ExpertBatch, vectors: Float32Array, hidden: number): Float32Array {
	const topK = weight!.length / rowCount;
	const out = new Float32Array(rowCount * hidden);
	for (let row = 0; row < rowCount; row++) {
		weightedSum(out, row * hidden, hidden, vectors, row * topK * hidden, weight!, row * topK, topK);
	}
	return out;
}

/** Dimensions of a model that exists only to be served. */
export interface PlainDims {
	readonly layers: number;
	readonly experts: number;
	readonly hidden: number;
	readonly width: number;
}

/** A model of random F32 experts in memory; only what a worker reads of one. */
export function plainModel(
	{ layers, experts, hidden, width }: PlainDims,
	modelId: Uint8Array,
): Pick<Model, "name" | "modelId" | "shape" | "weights" | "weightsKind"> {
	const matrix = (seed: number, outputs: number, inputs: number): WeightMatrix => {
		const random = seededRandom(seed);
		const values = Float32Array.from({ length: outputs * inputs }, () => random.uniform() - 0.5);
		return { type: "F32", outputs, inputs, bytes: new Uint8Array(values.buffer) };
	};
	const weights = {
		async expert(layer: number, expert: number): Promise<ExpertWeights> {
			const seed = 1 + 3 * (layer * experts + expert);
			return {
				gate: matrix(seed, width, hidden),
				up: matrix(seed + 1, width, hidden),
				down: matrix(seed + 2, hidden, width),
			};
		},
	} as Model["weights"];
	const shape = { layers, experts, hidden, topK: 2, expertWidth: width } as Model["shape"];
	return { name: "plain", modelId, shape, weights, weightsKind: "file" };
}
