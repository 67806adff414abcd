import type { ExpertBatch, ExpertEngine } from "../experts/engine.ts";
import type { Model } from "../model/model.ts";

/**
 * The backbone's own copy of every expert: loaded into the engine on first use, the longest unused unloaded when memory runs
 * out. The shared expert of a layer is expert number `shape.experts`. Calls are answered one after another.
 */
export class LocalExperts {
	readonly #model: Model;
	readonly #engine: ExpertEngine;
	readonly #memoryBytes: number;
	/** Loaded experts, the longest unused first, with the bytes each takes. */
	readonly #loaded = new Map<string, { layer: number; expert: number; bytes: number }>();
	#largestBytes = 0;
	#previous: Promise<unknown> = Promise.resolve();

	/** @param memoryBytes most bytes the engine shall hold; a single expert is always allowed */
	constructor(model: Model, engine: ExpertEngine, memoryBytes = Number.POSITIVE_INFINITY) {
		this.#model = model;
		this.#engine = engine;
		this.#memoryBytes = memoryBytes;
	}

	/** (pairs, hidden), as the engine computes it. Throws what the engine throws. */
	compute(batch: ExpertBatch): Promise<Float32Array> {
		const computed = this.#previous.then(() => this.#compute(batch));
		this.#previous = computed.catch(() => {});
		return computed;
	}

	async #compute(batch: ExpertBatch): Promise<Float32Array> {
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

	async #computeInParts(batch: ExpertBatch, groups: readonly number[][]): Promise<Float32Array> {
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
		for (const expert of experts) {
			const key = `${layer}/${expert}`;
			const loaded = this.#loaded.get(key);
			if (loaded) {
				this.#loaded.delete(key); // and back in, as the last used
				this.#loaded.set(key, loaded);
			}
		}
		for (const expert of experts) {
			if (!this.#loaded.has(`${layer}/${expert}`)) await this.#load(layer, expert, new Set(experts));
		}
	}

	async #load(layer: number, expert: number, needed: ReadonlySet<number>): Promise<void> {
		const { weights, shape } = this.#model;
		await this.#makeRoom(layer, needed);
		const matrices = expert === shape.experts ? weights.sharedExpert(layer) : weights.expert(layer, expert);
		const before = this.#engine.bytesHeld;
		await this.#engine.load(layer, expert, await matrices);
		const bytes = this.#engine.bytesHeld - before;
		this.#largestBytes = Math.max(this.#largestBytes, bytes);
		this.#loaded.set(`${layer}/${expert}`, { layer, expert, bytes });
	}

	/** Unloads the longest unused experts until one more of the largest size fits; never those needed now. */
	async #makeRoom(layer: number, needed: ReadonlySet<number>): Promise<void> {
		for (const [key, held] of this.#loaded) {
			if (this.#engine.bytesHeld + this.#largestBytes <= this.#memoryBytes) return;
			if (held.layer === layer && needed.has(held.expert)) continue;
			this.#loaded.delete(key);
			await this.#engine.unload(held.layer, held.expert);
		}
	}
}
