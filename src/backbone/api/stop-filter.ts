/** Cuts a growing text at the first stop sequence; what could be the beginning of one is held back until it is not. */
export class StopFilter {
	readonly #stops: readonly string[];
	readonly #longest: number;
	#held = "";
	#stopped = false;

	constructor(stops: readonly string[]) {
		this.#stops = stops;
		this.#longest = Math.max(0, ...stops.map((stop) => stop.length));
	}

	/** True once a stop sequence came; nothing follows. */
	get stopped(): boolean {
		return this.#stopped;
	}

	/** The text that may go out now. */
	push(text: string): string {
		if (this.#stopped) return "";
		const all = this.#held + text;
		const cut = Math.min(...this.#stops.map((stop) => all.indexOf(stop)).filter((at) => at >= 0));
		if (cut !== Number.POSITIVE_INFINITY) {
			this.#stopped = true;
			this.#held = "";
			return all.slice(0, cut);
		}
		const keep = this.#beginningAtEnd(all);
		this.#held = all.slice(all.length - keep);
		return all.slice(0, all.length - keep);
	}

	/** What was held back: the text is over. */
	end(): string {
		const rest = this.#stopped ? "" : this.#held;
		this.#held = "";
		return rest;
	}

	/** The length of the longest end of `text` that begins a stop sequence. */
	#beginningAtEnd(text: string): number {
		for (let length = Math.min(this.#longest - 1, text.length); length > 0; length--) {
			const end = text.slice(text.length - length);
			if (this.#stops.some((stop) => stop.startsWith(end))) return length;
		}
		return 0;
	}
}
