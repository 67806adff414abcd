import { type AccuracyLevel, type NBitsMatrix, nBitsMatrixGraph } from "../model/onnx/nbits-graph.ts";
import type { OnnxModel } from "../model/onnx/onnx-model.ts";

/** How a MatMulNBits matrix is packed and computed. */
export interface NBitsOptions extends Pick<NBitsMatrix, "outputs" | "inputs" | "bits" | "blockSize"> {
	readonly accuracyLevel: AccuracyLevel;
	/** Also adds (sum of each block of x) C, without which weights with mins (Q4_K, Q5_K) cannot be exact. */
	readonly mins: boolean;
}

/** A matrix for onnxruntime's MatMulNBits with arbitrary weights, for measuring: `x` (rows, inputs) -> `y` (rows, outputs). */
export function nBitsGraph({ accuracyLevel, mins, ...dims }: NBitsOptions): OnnxModel {
	const { outputs, inputs, bits, blockSize } = dims;
	const blocks = inputs / blockSize;
	const packed = new Uint8Array(outputs * blocks * ((blockSize * bits) / 8)).map((_, i) => (i * 2654435761) >>> 13);
	const scales = new Float32Array(outputs * blocks).fill(2 ** -10);
	const offsets = new Float32Array(blocks * outputs).fill(2 ** -8);
	return nBitsMatrixGraph({ ...dims, packed, scales, ...(mins && { offsets }) }, accuracyLevel);
}
