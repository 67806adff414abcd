import { anyScale, makeMatrix, makeRow, xorshift } from "../../src/experts/self-check-inputs.ts";
import type { TensorType, WeightMatrix } from "../../src/model/weight-matrix.ts";

// Weights and rows that make trouble, for comparing kernels bit for bit.

/** Any bytes a file may hold, with finite scales and weights; `byte`: every byte of them but the scales. */
export function anyMatrix(
	type: TensorType,
	outputs: number,
	inputs: number,
	seed: number,
	byte?: number,
): WeightMatrix {
	return makeMatrix(type, outputs, inputs, xorshift(seed), anyScale, byte);
}

/** Finite values that make trouble: ties, zeros of both signs, subnormals, outliers, block maxima around 2^-64. */
export function anyRow(length: number, seed: number): Float32Array {
	return makeRow(length, xorshift(seed ^ 0x5bd1e995));
}
