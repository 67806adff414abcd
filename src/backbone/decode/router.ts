import { exp64 } from "../../experts/exp64.ts";

/** The experts of some rows: per row its k best, best first, with weights that add up to 1. */
export interface Routes {
	readonly topK: number;
	/** (rows, topK) */
	readonly expert: Uint16Array;
	/** (rows, topK) */
	readonly weight: Float32Array;
}

/**
 * Chooses the experts of each row (numerics.md section 2): top-k by logit, ties to the lower id, -0 = +0;
 * weights are the softmax over the chosen ones, in binary64.
 *
 * @param logits (rows, experts), finite
 */
export function route(logits: Float32Array, rows: number, experts: number, topK: number): Routes {
	const routes: Routes = {
		topK,
		expert: new Uint16Array(rows * topK),
		weight: new Float32Array(rows * topK),
	};
	for (let row = 0; row < rows; row++) {
		const rowLogits = logits.subarray(row * experts, (row + 1) * experts);
		const chosen = routes.expert.subarray(row * topK, (row + 1) * topK);
		selectLargest(rowLogits, chosen);
		weigh(rowLogits, chosen, routes.weight.subarray(row * topK, (row + 1) * topK));
	}
	return routes;
}

/** Fills `chosen` with the ids of the largest values, largest first, ties to the lower id. */
export function selectLargest(values: Float32Array, chosen: Uint16Array | Uint32Array): void {
	let count = 0;
	for (let id = 0; id < values.length; id++) {
		const value = values[id]!;
		if (count === chosen.length && !(value > values[chosen[count - 1]!]!)) continue;
		let rank = count < chosen.length ? count++ : count - 1;
		for (; rank > 0 && value > values[chosen[rank - 1]!]!; rank--) chosen[rank] = chosen[rank - 1]!;
		chosen[rank] = id;
	}
}

function weigh(logits: Float32Array, chosen: Uint16Array, weights: Float32Array): void {
	const best = logits[chosen[0]!]!;
	const terms = new Float64Array(chosen.length);
	let sum = 0;
	for (let rank = 0; rank < chosen.length; rank++) {
		const term = exp64(logits[chosen[rank]!]! - best);
		terms[rank] = term;
		sum += term;
	}
	for (let rank = 0; rank < chosen.length; rank++) weights[rank] = terms[rank]! / sum;
}
