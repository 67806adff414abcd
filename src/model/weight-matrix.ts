/** The tensor types of GGUF that Kvasir reads, by their ggml number. */
export const tensorTypes = {
	F32: 0,
	F16: 1,
	Q8_0: 8,
	Q4_K: 12,
	Q5_K: 13,
	Q6_K: 14,
	BF16: 30,
} as const;

export type TensorType = keyof typeof tensorTypes;

/** A matrix as the file holds it: `outputs` rows of `inputs` weights, row after row, in blocks of its type. */
export interface WeightMatrix {
	readonly type: TensorType;
	readonly outputs: number;
	readonly inputs: number;
	/** Raw little-endian GGUF bytes of all rows. */
	readonly bytes: Uint8Array;
}

/** The three matrices of one expert, as the bytes of the GGUF file. */
export interface ExpertWeights {
	/** (width, hidden) */
	readonly gate: WeightMatrix;
	/** (width, hidden) */
	readonly up: WeightMatrix;
	/** (hidden, width) */
	readonly down: WeightMatrix;
}
