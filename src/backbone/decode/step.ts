import type { MixerSpan } from "./mixer.ts";
import type { Sequence } from "./sequence.ts";

/** Tokens that one sequence decodes in this step, after those it already holds. */
export interface Chunk {
	readonly sequence: Sequence;
	readonly tokens: readonly number[];
	/** Which rows' logits are wanted. */
	readonly wantLogits: "last" | "all" | "none";
	readonly phase: "prefill" | "decode";
}

/** The rows of one step: those of every chunk, one below the other. */
export interface Step {
	readonly count: number;
	readonly chunks: readonly Chunk[];
	/** One per chunk. */
	readonly spans: readonly MixerSpan[];
	/** Per row: the chunk it belongs to. */
	readonly chunkOfRow: readonly number[];
	/** Per row: its position in its sequence. */
	readonly positionOfRow: readonly number[];
}

/** Lays the chunks out as rows. */
export function layOutStep(chunks: readonly Chunk[]): Step {
	const spans: MixerSpan[] = [];
	const chunkOfRow: number[] = [];
	const positionOfRow: number[] = [];
	for (const [index, { sequence, tokens }] of chunks.entries()) {
		spans.push({ sequence, firstRow: chunkOfRow.length, tokens: tokens.length });
		for (let token = 0; token < tokens.length; token++) {
			chunkOfRow.push(index);
			positionOfRow.push(sequence.length + token);
		}
	}
	return { count: chunkOfRow.length, chunks, spans, chunkOfRow, positionOfRow };
}
