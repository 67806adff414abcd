import type { ExpertWeights } from "../model/weight-matrix.ts";
import type { DeviceProof, ExpertBatch, ExpertEngine } from "./engine.ts";

/** An engine that takes experts at once and loads each when it is first asked for: for weights that cost something to make. */
export class OnDemandEngine implements ExpertEngine {
	readonly engineClass: string;
	readonly proof?: DeviceProof;
	readonly #engine: ExpertEngine;
	/** By layer, then by expert: what was given and never asked for. */
	readonly #given = new Map<number, Map<number, ExpertWeights>>();
	/** One expert after the other: the same one is never loaded twice. */
	#loading: Promise<unknown> = Promise.resolve();

	constructor(engine: ExpertEngine) {
		this.#engine = engine;
		this.engineClass = engine.engineClass;
		if (engine.proof) this.proof = engine.proof;
	}

	get bytesHeld(): number {
		return this.#engine.bytesHeld;
	}

	async load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
		const given = this.#given.get(layer) ?? new Map<number, ExpertWeights>();
		this.#given.set(layer, given.set(expert, weights));
	}

	async unload(layer: number, expert: number): Promise<void> {
		this.#given.get(layer)?.delete(expert);
		await this.#loading;
		await this.#engine.unload(layer, expert);
	}

	has(layer: number, expert: number): boolean {
		return this.#given.get(layer)?.has(expert) === true || this.#engine.has(layer, expert);
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		const given = this.#given.get(batch.layer);
		if (given?.size) {
			const loading = this.#loading.then(() => this.#loadAsked(batch, given));
			this.#loading = loading.catch(() => {});
			await loading;
		}
		return this.#engine.compute(batch);
	}

	close(): Promise<void> {
		return this.#engine.close();
	}

	async #loadAsked({ layer, expert }: ExpertBatch, given: Map<number, ExpertWeights>): Promise<void> {
		for (const id of new Set(expert)) {
			const weights = given.get(id);
			if (!weights) continue;
			await this.#engine.load(layer, id, weights);
			given.delete(id);
		}
	}
}
