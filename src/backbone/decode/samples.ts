/** The last values of a measurement, for medians of what happens now. */
export class Samples {
	readonly #values: Float64Array;
	#count = 0;

	constructor(kept = 512) {
		this.#values = new Float64Array(kept);
	}

	add(value: number): void {
		this.#values[this.#count++ % this.#values.length] = value;
	}

	/** The value below which `share` (0 to 1) of the kept ones lie; null before the first. */
	quantile(share: number): number | null {
		const kept = this.#values.slice(0, Math.min(this.#count, this.#values.length)).sort();
		return kept.length === 0 ? null : kept[Math.min(kept.length - 1, Math.floor(share * kept.length))]!;
	}
}
