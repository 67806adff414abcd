import { encodeModel, int64Constant, type OnnxConstant, type OnnxModel } from "../model/onnx/onnx-model.ts";

/** How a MatMulNBits matrix is packed and computed. */
export interface NBitsOptions {
	readonly outputs: number;
	readonly inputs: number;
	readonly bits: 4 | 8;
	readonly blockSize: 16 | 32;
	/** 0: float accumulation; 4: activations rounded to int8 per block. */
	readonly accuracyLevel: 0 | 4;
	/** Also adds (sum of each block of x) C, without which weights with mins (Q4_K, Q5_K) cannot be exact. */
	readonly mins: boolean;
}

/** A matrix for onnxruntime's MatMulNBits with arbitrary weights, for measuring: `x` (rows, inputs) -> `y` (rows, outputs). */
export function nBitsGraph({ outputs, inputs, bits, blockSize, accuracyLevel, mins }: NBitsOptions): OnnxModel {
	const blocks = inputs / blockSize;
	const packed = new Uint8Array(outputs * blocks * ((blockSize * bits) / 8)).map((_, i) => (i * 2654435761) >>> 13);
	const scales = new Float32Array(outputs * blocks).fill(2 ** -10);
	const constants: OnnxConstant[] = [
		{ name: "w", type: "uint8", dims: [outputs, blocks, (blockSize * bits) / 8], data: packed, external: true },
		{ name: "scales", type: "float", dims: [outputs * blocks], data: scales },
	];
	const product = {
		op: "MatMulNBits",
		domain: "com.microsoft",
		inputs: ["x", "w", "scales"],
		outputs: [mins ? "product" : "y"],
		attributes: {
			K: { int: inputs },
			N: { int: outputs },
			bits: { int: bits },
			block_size: { int: blockSize },
			accuracy_level: { int: accuracyLevel },
		},
	} as const;
	const correction = [
		{ op: "Reshape", inputs: ["x", "blocksOf"], outputs: ["xBlocks"] },
		{ op: "ReduceSum", inputs: ["xBlocks", "last"], outputs: ["sums"], attributes: { keepdims: { int: 0 } } },
		{ op: "MatMul", inputs: ["sums", "c"], outputs: ["correction"] },
		{ op: "Add", inputs: ["product", "correction"], outputs: ["y"] },
	];
	if (mins) {
		constants.push(int64Constant("blocksOf", [0, blocks, blockSize]), int64Constant("last", [2]));
		const c = new Float32Array(blocks * outputs).fill(2 ** -8);
		constants.push({ name: "c", type: "float", dims: [blocks, outputs], data: c });
	}
	return encodeModel({
		nodes: mins ? [product, ...correction] : [product],
		inputs: [{ name: "x", type: "float", dims: ["rows", inputs] }],
		outputs: [{ name: "y", type: "float", dims: ["rows", outputs] }],
		constants,
	});
}
