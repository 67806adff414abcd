import type { WeightMatrix } from "../model/weight-matrix.ts";

/** Several matrices that read the same rows (as attn_qkv, attn_gate, ssm_alpha, ssm_beta do): one pass, one quantisation of the rows. */
export interface MatrixGroup {
	/**
	 * @param rows (rowCount, inputs)
	 * @returns one (rowCount, outputs) array per matrix, in the order they were given. Row r depends on row r alone.
	 */
	multiply(rows: Float32Array, rowCount: number): Promise<Float32Array[]>;
	close(): Promise<void>;
}

/** Builds matrix groups of one engine; the dense side of what an engine offers (the experts are the other). */
export interface MatrixEngine {
	readonly engineClass: string;
	group(name: string, matrices: readonly WeightMatrix[]): Promise<MatrixGroup>;
}
