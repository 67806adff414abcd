import type { Projections } from "./projections.ts";
import type { Sequence } from "./sequence.ts";

/** The rows of one sequence within a step. */
export interface MixerSpan {
	readonly sequence: Sequence;
	/** Its first row among the step's rows. */
	readonly firstRow: number;
	/** How many rows it has. */
	readonly tokens: number;
}

/** What tells the tokens of a sequence about each other: a gated delta net, or gated attention. */
export interface Mixer {
	readonly projections: Projections;
	/** Values per row between `mix` and `output`. */
	readonly width: number;
	/**
	 * Mixes the rows of a step: `mixed` (rows, width) of `projected`, the input's matrices times those rows; updates what each
	 * sequence remembers. A row's bits depend on the tokens before it in its sequence, and on nothing else.
	 * Throws `non_finite`.
	 */
	mix(projected: readonly Float32Array[], spans: readonly MixerSpan[], mixed: Float32Array): void;
}
