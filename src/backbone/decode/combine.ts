import { exp64 } from "../../experts/exp64.ts";
import { weightedSum } from "../../experts/weighted-sum.ts";
import type { Routes } from "./router.ts";

/** The vectors of one step's expert block. */
export interface BlockVectors {
	/** (rows, topK + 1, hidden): a row's routed vectors in the router's rank order, then its shared expert's. */
	readonly values: Float32Array;
	/** Per row: 1 where slot 0 already holds the finished weighted sum; null: nowhere. */
	readonly summed: Uint8Array | null;
}

/**
 * Adds a block's output to the residual (numerics.md section 2): the routed vectors are summed in rank order, never in order
 * of arrival; the gated shared vector is added to the finished sum, then that to the residual; each operation in binary32.
 *
 * @param residual (rows, hidden)
 * @param gates (rows): the shared expert's gate before its sigmoid
 */
export function combineInto(
	residual: Float32Array,
	hidden: number,
	{ values, summed }: BlockVectors,
	{ topK, weight }: Routes,
	gates: Float32Array,
): void {
	const routed = new Float32Array(hidden);
	for (let row = 0; row < gates.length; row++) {
		const start = row * (topK + 1) * hidden;
		if (summed?.[row]) routed.set(values.subarray(start, start + hidden));
		else weightedSum(routed, 0, hidden, values, start, weight, row * topK, topK);
		const gate = Math.fround(1 / (1 + exp64(-gates[row]!)));
		const sharedStart = start + topK * hidden;
		for (let i = 0; i < hidden; i++) {
			const block = Math.fround(routed[i]! + Math.fround(gate * values[sharedStart + i]!));
			residual[row * hidden + i] = Math.fround(residual[row * hidden + i]! + block);
		}
	}
}
