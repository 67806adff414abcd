import { KvasirError } from "../../errors.ts";
import type { ExpertWeights, WeightMatrix } from "../../model/weight-matrix.ts";
import type { ExpertBatch, ExpertEngine } from "../engine.ts";
import type { MatrixEngine, MatrixGroup } from "../matrices.ts";
import type { OpenDevice } from "./adapters.ts";
import { DeviceStore, type Held } from "./device-store.ts";
import { Pipelines } from "./pipelines.ts";
import type { DeviceMatrix } from "./plan.ts";
import { Scratch } from "./scratch.ts";
import { Submission } from "./submission.ts";
import { isBlockType } from "./wgsl-dot.ts";

interface DeviceExpert {
	readonly held: Held;
	readonly gate: DeviceMatrix;
	readonly up: DeviceMatrix;
	readonly down: DeviceMatrix;
}

/** Pairs of one submission at most, so that no submission holds the device (or a watchdog's patience) for long. */
const pairsPerSubmission = 1024;

/** Words of the plan that a product takes at most: a slot, and a job of its own. */
const planWordsPerProduct = 5;

/**
 * canonical-1 on a graphics device: the same bits as the WASM kernels, since every step runs on integers.
 * Gate, up, silu, quantisation, down and the whole-row sum of all pairs are one submission; only rows and results cross.
 * One call at a time: the caller waits for an answer before it asks again.
 */
export class GpuEngine implements ExpertEngine, MatrixEngine {
	readonly engineClass = "canonical-1";
	readonly #open: OpenDevice;
	readonly #store: DeviceStore;
	readonly #pipelines: Pipelines;
	readonly #scratch: Scratch;
	readonly #experts = new Map<string, DeviceExpert>();

	/**
	 * @param memoryBytes of the device, for weights
	 * @param packedDot packed dot products in the shaders, where the language has them
	 */
	constructor(open: OpenDevice, memoryBytes: number, packedDot = hasPackedDot(open)) {
		this.#open = open;
		this.#store = new DeviceStore(open.device, memoryBytes);
		this.#pipelines = new Pipelines(open.device, packedDot);
		this.#scratch = new Scratch(open.device);
	}

	get bytesHeld(): number {
		return this.#store.bytesHeld;
	}

	/** From now on at most so many bytes of weights. */
	limitMemory(memoryBytes: number): void {
		this.#store.limit(memoryBytes);
	}

	has(layer: number, expert: number): boolean {
		return this.#experts.has(`${layer}/${expert}`);
	}

	async load(layer: number, expert: number, { gate, up, down }: ExpertWeights): Promise<void> {
		const name = `expert ${expert} of layer ${layer}`;
		const fits = up.inputs === gate.inputs && up.outputs === gate.outputs && down.inputs === gate.outputs;
		if (!fits || down.outputs !== gate.inputs) {
			throw new KvasirError("unsupported_shape", `Cannot load ${name}: its matrices do not fit each other`);
		}
		const held = await this.#store.hold(name, [gate, up, down]);
		await this.unload(layer, expert);
		const [g, u, d] = held.matrices as [DeviceMatrix, DeviceMatrix, DeviceMatrix];
		this.#experts.set(`${layer}/${expert}`, { held, gate: g, up: u, down: d });
	}

	async unload(layer: number, expert: number): Promise<void> {
		const expertHeld = this.#experts.get(`${layer}/${expert}`);
		if (!expertHeld) return;
		this.#experts.delete(`${layer}/${expert}`);
		this.#store.release(expertHeld.held);
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		const experts = Array.from(batch.expert, (id) => this.#expert(batch, id));
		if (experts.length === 0) return new Float32Array(0);
		const { rowIndex, rowCount, weight } = batch;
		const hidden = experts[0]!.down.outputs;
		const parts: { at: number; vectors: Float32Array }[] = [];
		for (let from = 0; from < experts.length; ) {
			let to = Math.min(experts.length, from + pairsPerSubmission);
			// A row whose pairs are to be summed is never cut in two.
			while (weight && to < experts.length && rowIndex[to] === rowIndex[to - 1]) to++;
			const vectors = await this.#submit(batch, experts.slice(from, to), from);
			parts.push({ at: weight ? rowIndex[from]! : from, vectors });
			from = to;
		}
		return assembled(parts, hidden, weight ? rowCount : experts.length);
	}

	async group(name: string, matrices: readonly WeightMatrix[]): Promise<MatrixGroup> {
		const held = await this.#store.hold(name, matrices);
		return {
			multiply: async (values, rowCount) => {
				const outs: Float32Array[] = [];
				for (const matrix of held.matrices) outs.push(await this.#multiply(matrix, values, rowCount));
				return outs;
			},
			close: async () => this.#store.release(held),
		};
	}

	/** exp32 of each value (numerics.md), for the self-check. */
	async exponentials(values: Float32Array): Promise<Float32Array> {
		const submission = this.#submission(1);
		const result = submission.exponentials(values);
		return (await submission.finish(result, values.length)).values;
	}

	async close(): Promise<void> {
		this.#open.device.destroy();
	}

	async #multiply(matrix: DeviceMatrix, values: Float32Array, rowCount: number): Promise<Float32Array> {
		const submission = this.#submission(rowCount * planWordsPerProduct);
		const x = submission.enter("x", { dtype: "f32", values }, matrix.inputs, 0, rowCount);
		const outputs = this.#scratch.get("vectors", rowCount * matrix.outputs * 4);
		const products = Array.from({ length: rowCount }, (_, row) => ({ matrix, from: row, to: row }));
		submission.multiply(products, x, outputs);
		return checked(await submission.finish(outputs, rowCount * matrix.outputs));
	}

	/** The vectors of `experts`, the pairs of `batch` from number `firstPair` on; or the sums of their rows. */
	async #submit(batch: ExpertBatch, experts: readonly DeviceExpert[], firstPair: number): Promise<Float32Array> {
		const pairs = experts.length;
		const { gate, down } = experts[0]!;
		const rowIndex = batch.rowIndex.subarray(firstPair, firstPair + pairs);
		const firstRow = rowIndex[0]!;
		const rowCount = rowIndex[pairs - 1]! - firstRow + 1;
		const submission = this.#submission(pairs * 3 * planWordsPerProduct + pairs + rowCount + 1);

		const x = submission.enter("x", batch.rows, gate.inputs, firstRow, rowCount);
		const gated = this.#scratch.get("gated", pairs * gate.outputs * 8);
		const products = (name: "gate" | "up", firstTo: number) =>
			experts.map((expert, pair) => ({ matrix: expert[name], from: rowIndex[pair]! - firstRow, to: firstTo + pair }));
		submission.multiply([...products("gate", 0), ...products("up", pairs)], x, gated);

		const h = submission.rows("h", down.inputs, pairs);
		submission.activate(h, gated);
		const vectors = this.#scratch.get("vectors", pairs * down.outputs * 4);
		const downs = experts.map((expert, pair) => ({ matrix: expert.down, from: pair, to: pair }));
		submission.multiply(downs, h, vectors);

		if (!batch.weight) return checked(await submission.finish(vectors, pairs * down.outputs));
		const starts = rowStarts(rowIndex, firstRow, rowCount);
		const weight = batch.weight.subarray(firstPair, firstPair + pairs);
		const summed = submission.sumRows(vectors, down.outputs, starts, weight);
		return checked(await submission.finish(summed, rowCount * down.outputs));
	}

	#submission(planWords: number): Submission {
		return new Submission(this.#open.device, this.#pipelines, this.#scratch, planWords);
	}

	#expert({ layer, rows }: ExpertBatch, id: number): DeviceExpert {
		const expert = this.#experts.get(`${layer}/${id}`);
		if (!expert) {
			throw new KvasirError("engine_failed", `Cannot compute: expert ${id} of layer ${layer} is not on the device`);
		}
		if (rows.dtype === "q14" && !(isBlockType(expert.gate.type) && isBlockType(expert.up.type))) {
			throw new KvasirError(
				"unsupported_type",
				`Cannot compute: quantised rows for the float weights of layer ${layer}`,
			);
		}
		return expert;
	}
}

function hasPackedDot({ gpu }: OpenDevice): boolean {
	return gpu.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product") ?? false;
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
function assembled(parts: readonly { at: number; vectors: Float32Array }[], hidden: number, count: number) {
	if (parts.length === 1 && parts[0]!.vectors.length === hidden * count) return parts[0]!.vectors;
	const all = new Float32Array(hidden * count);
	for (const { at, vectors } of parts) all.set(vectors, at * hidden);
	return all;
}
