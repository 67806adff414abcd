import { KvasirError } from "../../errors.ts";
import type { ExpertBatch, ExpertEngine } from "../../experts/engine.ts";
import type { Model } from "../../model/model.ts";
import type { ExpertWeights } from "../../model/weight-matrix.ts";

/** Pairs to compute, one vector each. */
export type PairBatch = Omit<ExpertBatch, "weight">;

/**
 * The backbone's own copy of every expert: loaded into the engine on first use, the longest unused unloaded when memory runs
 * out. The shared expert of a layer is expert number `shape.experts`. Calls are answered one after another.
 */
export class LocalExperts {
	readonly #model: Model;
	readonly #engine: ExpertEngine;
	readonly #memoryBytes: number;
	/** Loaded experts, the longest unused first, with the bytes each takes. */
	readonly #loaded = new Map<number, { layer: number; expert: number; bytes: number }>();
	#bytes = 0;
	#largestBytes = 0;
	#previous: Promise<unknown> = Promise.resolve();

	/** @param memoryBytes most bytes of experts kept loaded; a single expert is always allowed */
	constructor(model: Model, engine: ExpertEngine, memoryBytes = Number.POSITIVE_INFINITY) {
		this.#model = model;
		this.#engine = engine;
		this.#memoryBytes = memoryBytes;
	}

	/** (pairs, hidden), as the engine computes it. Throws what the engine throws. */
	compute(batch: PairBatch): Promise<Float32Array> {
		const computed = this.#previous.then(() => this.#compute(batch));
		this.#previous = computed.catch(() => {});
		return computed;
	}

	async #compute(batch: PairBatch): Promise<Float32Array> {
		const experts = [...new Set(batch.expert)];
		const groups = await this.#loadFirst(batch.layer, experts);
		if (groups.length === 0) return this.#engine.compute(batch);
		return this.#computeInParts(batch, groups);
	}

	/**
	 * Loads what fits. When everything does, nothing is left to do; otherwise the experts come back in groups that fit,
	 * to be computed group by group.
	 */
	async #loadFirst(layer: number, experts: readonly number[]): Promise<number[][]> {
		const capacity = this.#largestBytes > 0 ? Math.max(1, Math.floor(this.#memoryBytes / this.#largestBytes)) : 1;
		if (this.#memoryBytes === Number.POSITIVE_INFINITY || experts.length <= capacity) {
			await this.#loadAll(layer, experts);
			return [];
		}
		const groups: number[][] = [];
		for (let first = 0; first < experts.length; first += capacity) {
			groups.push(experts.slice(first, first + capacity));
		}
		return groups;
	}

	async #computeInParts(batch: PairBatch, groups: readonly number[][]): Promise<Float32Array> {
		let vectors = new Float32Array(0);
		for (const group of groups) {
			await this.#loadAll(batch.layer, group);
			const members = new Set(group);
			const pairs = [...batch.expert.keys()].filter((pair) => members.has(batch.expert[pair]!));
			const part = await this.#engine.compute({
				layer: batch.layer,
				rowCount: batch.rowCount,
				rows: batch.rows,
				rowIndex: Uint16Array.from(pairs, (pair) => batch.rowIndex[pair]!),
				expert: Uint16Array.from(pairs, (pair) => batch.expert[pair]!),
			});
			const width = part.length / pairs.length;
			if (vectors.length === 0) vectors = new Float32Array(batch.expert.length * width);
			for (const [i, pair] of pairs.entries()) vectors.set(part.subarray(i * width, (i + 1) * width), pair * width);
		}
		return vectors;
	}

	async #loadAll(layer: number, experts: readonly number[]): Promise<void> {
		const missing: number[] = [];
		for (const expert of experts) {
			const loaded = this.#loaded.get(keyOf(layer, expert));
			if (loaded === undefined) missing.push(expert);
			else if (this.#memoryBytes !== Number.POSITIVE_INFINITY) {
				this.#loaded.delete(keyOf(layer, expert)); // and back in, as the last used
				this.#loaded.set(keyOf(layer, expert), loaded);
			}
		}
		for (const expert of missing) await this.#load(layer, expert, new Set(experts));
	}

	async #load(layer: number, expert: number, needed: ReadonlySet<number>): Promise<void> {
		const { weights, shape } = this.#model;
		const matrices = await (expert === shape.experts ? weights.sharedExpert(layer) : weights.expert(layer, expert));
		while (this.#bytes + this.#largestBytes > this.#memoryBytes && (await this.#unloadOldest(layer, needed)));
		const bytes = await this.#loadInto(layer, expert, matrices, needed);
		this.#loaded.set(keyOf(layer, expert), { layer, expert, bytes });
		this.#bytes += bytes;
		this.#largestBytes = Math.max(this.#largestBytes, bytes);
	}

	/** Loads one expert, unloading others while the engine has no room (holes of the wrong size); returns the bytes it takes. */
	async #loadInto(layer: number, expert: number, weights: ExpertWeights, needed: ReadonlySet<number>): Promise<number> {
		const before = this.#engine.bytesHeld;
		try {
			await this.#engine.load(layer, expert, weights);
			return this.#engine.bytesHeld - before;
		} catch (error) {
			const full = error instanceof KvasirError && error.code === "out_of_memory";
			if (!full || !(await this.#unloadOldest(layer, needed))) throw error;
			return this.#loadInto(layer, expert, weights, needed);
		}
	}

	/** Unloads the longest unused expert, but none of those needed now; false when there is no other. */
	async #unloadOldest(layer: number, needed: ReadonlySet<number>): Promise<boolean> {
		for (const [key, held] of this.#loaded) {
			if (held.layer === layer && needed.has(held.expert)) continue;
			this.#loaded.delete(key);
			this.#bytes -= held.bytes;
			await this.#engine.unload(held.layer, held.expert);
			return true;
		}
		return false;
	}
}

/** Expert ids are 16 bits wide. */
function keyOf(layer: number, expert: number): number {
	return layer * 2 ** 16 + expert;
}
