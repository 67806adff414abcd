import type { MatrixGroup } from "../../experts/matrices.ts";
import type { Rotation } from "./rotation.ts";
import type { Sequence } from "./sequence.ts";

/** The rows of one sequence within a step. */
export interface MixerSpan {
	readonly sequence: Sequence;
	/** Its first row among the step's rows. */
	readonly firstRow: number;
	/** How many rows it has. */
	readonly tokens: number;
	readonly rotation: Rotation;
}

/** What tells the tokens of a sequence about each other: a gated delta net, or gated attention. */
export interface Mixer {
	/** Projections of the normed rows, all sequences together. */
	readonly input: MatrixGroup;
	/** Projection back to the hidden width. */
	readonly output: MatrixGroup;
	/** Values per row between `mix` and `output`. */
	readonly width: number;
	/** (tokens, width) of one sequence, from the step's projected rows; updates what the sequence remembers. */
	mix(projected: readonly Float32Array[], span: MixerSpan): Promise<Float32Array>;
	close(): Promise<void>;
}
