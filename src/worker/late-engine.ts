import { KvasirError } from "../errors.ts";
import type { DeviceProof, ExpertBatch, ExpertEngine } from "../experts/engine.ts";
import type { ExpertWeights } from "../model/weight-matrix.ts";

/** Opens an engine for rows of `hidden` values; `expert` gives it one of the model's experts to try itself on. Throws what engines throw. */
export type OpenForModel = (
	hidden: number,
	expert: (layer: number, expert: number) => Promise<ExpertWeights>,
) => Promise<ExpertEngine>;

/** An engine that suits any width and is open already; told where the model's experts come from once they are known. */
export interface EarlyEngine {
	readonly engine: ExpertEngine;
	setSource(expert: (layer: number, expert: number) => Promise<ExpertWeights>): void;
}

/** An engine that can only be opened once the backbone has said how wide the model's rows are. */
export class LateEngine implements ExpertEngine {
	readonly engineClass: string;
	readonly proof?: DeviceProof;
	readonly #open: OpenForModel;
	/** Until the first model takes it. */
	#early: EarlyEngine | null;
	#hidden = 0;
	#engine: ExpertEngine | null = null;
	#opening: Promise<ExpertEngine> | null = null;

	/**
	 * @param known what `open`'s engines are of, and on which device: it is told before one is open
	 * @param early for the first model, instead of opening one
	 */
	constructor(
		known: Pick<ExpertEngine, "engineClass" | "proof">,
		open: OpenForModel,
		early: EarlyEngine | null = null,
	) {
		this.engineClass = known.engineClass;
		this.#open = open;
		this.#early = early;
		if (known.proof) this.proof = known.proof;
	}

	/** Makes it an engine for rows of this width; one for another width is closed with all that it held. */
	async resize(...[hidden, expert]: Parameters<OpenForModel>): Promise<void> {
		if (this.#hidden !== hidden) {
			const early = this.#early;
			this.#early = null;
			await this.close();
			early?.setSource(expert);
			this.#hidden = hidden;
			this.#opening = early ? Promise.resolve(early.engine) : this.#open(hidden, expert);
		}
		this.#engine = await this.#opening!;
	}

	get bytesHeld(): number {
		return this.#engine?.bytesHeld ?? 0;
	}

	load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
		return this.#opened().load(layer, expert, weights);
	}

	async unload(layer: number, expert: number): Promise<void> {
		await this.#engine?.unload(layer, expert);
	}

	has(layer: number, expert: number): boolean {
		return this.#engine?.has(layer, expert) ?? false;
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		return this.#opened().compute(batch);
	}

	async close(): Promise<void> {
		const engine = (await this.#opening?.catch(() => null)) ?? this.#early?.engine;
		this.#early = null;
		this.#opening = null;
		this.#engine = null;
		this.#hidden = 0;
		await engine?.close();
	}

	#opened(): ExpertEngine {
		if (this.#engine !== null) return this.#engine;
		throw new KvasirError("engine_failed", "Cannot compute: the model's width is not known yet");
	}
}
