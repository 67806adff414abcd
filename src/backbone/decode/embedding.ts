import { dequantise } from "../../model/dequantise.ts";
import type { WeightSource } from "../../model/model.ts";

/** Rows kept widened: 1,024 rows of the largest model are 12 MiB. */
const cachedRowsMost = 1024;

/** The token embedding, read from the file row by row; the rows used last stay in memory. */
export class Embedding {
	readonly #weights: WeightSource;
	readonly #hidden: number;
	readonly #rows = new Map<number, Float32Array>();

	constructor(weights: WeightSource, hidden: number) {
		this.#weights = weights;
		this.#hidden = hidden;
	}

	/** Writes the rows of `tokens` to `out` from row `firstRow`. */
	async write(tokens: readonly number[], out: Float32Array, firstRow: number): Promise<void> {
		for (const [i, token] of tokens.entries()) {
			const row = this.#rows.get(token) ?? (await this.#read(token));
			this.#keep(token, row);
			out.set(row, (firstRow + i) * this.#hidden);
		}
	}

	async #read(token: number): Promise<Float32Array> {
		const { bytes, type } = await this.#weights.matrixRows("token_embd.weight", token, 1);
		return dequantise(bytes, type);
	}

	/** Puts the row behind all others; drops the one unused for longest. */
	#keep(token: number, row: Float32Array): void {
		this.#rows.delete(token);
		this.#rows.set(token, row);
		if (this.#rows.size > cachedRowsMost) this.#rows.delete(this.#rows.keys().next().value!);
	}
}
