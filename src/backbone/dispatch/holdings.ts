import type { ExpertRange, ModelFacts } from "../../protocol/messages.ts";

/** The experts one worker is ready to serve: one byte for each (layer, expert) of the model. */
export class Holdings {
	readonly #layers: number;
	readonly #experts: number;
	readonly #held: Uint8Array;
	#count = 0;

	constructor(model: Pick<ModelFacts, "layers" | "experts">) {
		this.#layers = model.layers;
		this.#experts = model.experts;
		this.#held = new Uint8Array(model.layers * model.experts);
	}

	/** How many experts are held. */
	get count(): number {
		return this.#count;
	}

	has(layer: number, expert: number): boolean {
		return expert < this.#experts && this.#held[layer * this.#experts + expert] === 1;
	}

	/**
	 * Makes the set equal to `ranges`; false, and nothing changed, when a range reaches outside the model.
	 * Ranges may overlap: work is bounded by the model's size times their number, and that by the message bound.
	 */
	replace(ranges: readonly ExpertRange[]): boolean {
		for (const { layer, first, count } of ranges) {
			if (layer >= this.#layers || first + count > this.#experts) return false;
		}
		this.#held.fill(0);
		for (const { layer, first, count } of ranges) {
			const start = layer * this.#experts + first;
			this.#held.fill(1, start, start + count);
		}
		this.#count = this.#held.reduce((sum, held) => sum + held, 0);
		return true;
	}

	/** Calls `visit` for each expert held, by layer, then by expert. */
	each(visit: (layer: number, expert: number) => void): void {
		for (let index = 0; index < this.#held.length; index++) {
			if (this.#held[index] === 1) visit(Math.floor(index / this.#experts), index % this.#experts);
		}
	}
}
