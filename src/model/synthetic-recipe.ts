import type { PlannedTensor } from "./tensor-plan.ts";

/** How random weights of a tensor are spread. */
export interface Recipe {
	/** Kept in binary32, as real files keep it. */
	readonly small: boolean;
	readonly mean: number;
	readonly deviation: number;
}

/**
 * Spreads that keep activations near 1 through any number of layers and logits apart: matrices 1/sqrt(inputs), norms
 * around 1, decays between 0 and 1, a router that prefers some experts without being sure.
 */
export function recipeOf({ name, ne }: PlannedTensor): Recipe {
	const perInput = 1 / Math.sqrt(ne[0]!);
	const small = (mean: number, deviation: number): Recipe => ({ small: true, mean, deviation });
	const matrix = (deviation: number): Recipe => ({ small: false, mean: 0, deviation });
	if (name.includes("norm")) return small(1, 0.1);
	if (name.endsWith("ssm_a")) return small(-0.5, 0.1);
	if (name.endsWith("ssm_dt.bias")) return small(0.1, 0.1);
	if (name.endsWith("ssm_conv1d.weight")) return small(0, 0.4);
	if (/ssm_(alpha|beta)/.test(name) || name.endsWith("ffn_gate_inp_shexp.weight")) return small(0, perInput);
	if (name.endsWith("ffn_gate_inp.weight")) return small(0, 2 * perInput);
	if (name === "token_embd.weight") return matrix(0.5);
	return matrix(name === "output.weight" ? 4 * perInput : perInput);
}
