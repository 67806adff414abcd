import { KvasirError } from "../../errors.ts";
import { f16ToF32 } from "../../model/half.ts";
import type { AnyMatrix, NBitsMatrix } from "../../model/onnx/nbits-graph.ts";
import type { WeightMatrix } from "../../model/weight-matrix.ts";
import { plainMatrix } from "../f32/plain-matrix.ts";
import { weightsAreFinite } from "../gpu/finite-weights.ts";

// The weights of a GGUF file for onnxruntime's MatMulNBits, exactly: only the activations lose anything there.

/** Throws `bad_weights` for a weight or scale that is not finite. */
export function nBitsMatrix(matrix: WeightMatrix): AnyMatrix {
	if (!weightsAreFinite(matrix)) {
		throw new KvasirError("bad_weights", "Cannot load a matrix: a weight or scale is not finite");
	}
	switch (matrix.type) {
		case "Q4_K":
			return convertK(matrix, 4);
		case "Q5_K":
			return convertK(matrix, 8);
		case "Q6_K":
			return convertQ6K(matrix);
		case "Q8_0":
			return convertQ80(matrix);
		default:
			return plainMatrix(matrix);
	}
}

/** Bytes that the converted matrix takes. */
export function nBitsBytes({ type, outputs, inputs }: WeightMatrix): number {
	// Packed weights, and a 4-byte scale (with an offset, 8 bytes) a block.
	const perWeight = {
		Q4_K: 0.5 + 8 / 32,
		Q5_K: 1 + 8 / 32,
		Q6_K: 1 + 4 / 16,
		Q8_0: 1 + 4 / 32,
		F32: 4,
		F16: 4,
		BF16: 4,
	};
	return Math.ceil(outputs * inputs * perWeight[type]);
}

interface Target {
	readonly view: DataView;
	readonly packed: Uint8Array;
	readonly scales: Float32Array;
}

function emptyMatrix({ outputs, inputs, bytes }: WeightMatrix, bits: 4 | 8, blockSize: 16 | 32): Target {
	return {
		view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
		packed: new Uint8Array((outputs * inputs * bits) / 8),
		scales: new Float32Array((outputs * inputs) / blockSize),
	};
}

/** Q4_K and Q5_K: w = d*sc*q - dmin*mn = d*sc*(q - middle) + (middle*d*sc - dmin*mn), in blocks of 32. */
function convertK(matrix: WeightMatrix, bits: 4 | 8): NBitsMatrix {
	const { outputs, inputs, type } = matrix;
	const { view, packed, scales } = emptyMatrix(matrix, bits, 32);
	const blocks = inputs / 32;
	const offsets = new Float32Array(blocks * outputs);
	const [blockBytes, lowAt, middle] = type === "Q4_K" ? [144, 16, 8] : [176, 48, 16];
	for (let block = 0; block < (outputs * inputs) / 256; block++) {
		const at = block * blockBytes;
		const [d, dmin] = [f16ToF32(view.getUint16(at, true)), f16ToF32(view.getUint16(at + 2, true))];
		for (let j = 0; j < 8; j++) {
			const [scale, minimum] = scaleAndMinimum(view, at + 4, j);
			const number = block * 8 + j;
			scales[number] = d * scale;
			offsets[(number % blocks) * outputs + Math.floor(number / blocks)] = middle * d * scale - dmin * minimum;
			for (let i = 0; i < 32; i++) {
				const low = (view.getUint8(at + lowAt + (j >> 1) * 32 + i) >> ((j & 1) * 4)) & 15;
				if (bits === 4) packed[number * 16 + (i >> 1)]! |= low << ((i & 1) * 4);
				else packed[number * 32 + i] = 128 - middle + (low | (((view.getUint8(at + 16 + i) >> j) & 1) << 4));
			}
		}
	}
	return { outputs, inputs, bits, blockSize: 32, packed, scales, offsets };
}

/** The 6-bit scale and minimum of sub-block j, packed in 12 bytes (ggml: get_scale_min_k4). */
function scaleAndMinimum(view: DataView, at: number, j: number): readonly [scale: number, minimum: number] {
	const byte = (i: number) => view.getUint8(at + i);
	if (j < 4) return [byte(j) & 63, byte(j + 4) & 63];
	return [(byte(j + 4) & 15) | ((byte(j - 4) >> 6) << 4), (byte(j + 4) >> 4) | ((byte(j) >> 6) << 4)];
}

/** Q6_K: w = d*sc*(q - 32), a scale for every 16 weights. */
function convertQ6K(matrix: WeightMatrix): NBitsMatrix {
	const { outputs, inputs } = matrix;
	const { view, packed, scales } = emptyMatrix(matrix, 8, 16);
	for (let block = 0; block < (outputs * inputs) / 256; block++) {
		const at = block * 210;
		const d = f16ToF32(view.getUint16(at + 208, true));
		for (let j = 0; j < 16; j++) scales[block * 16 + j] = d * view.getInt8(at + 192 + j);
		for (let k = 0; k < 256; k++) {
			const [half, column, i] = [k >> 7, (k >> 5) & 3, k & 31];
			const low = (view.getUint8(at + half * 64 + (column & 1) * 32 + i) >> ((column >> 1) * 4)) & 15;
			const high = (view.getUint8(at + 128 + half * 32 + i) >> (column * 2)) & 3;
			packed[block * 256 + k] = 128 - 32 + (low | (high << 4));
		}
	}
	return { outputs, inputs, bits: 8, blockSize: 16, packed, scales };
}

/** Q8_0: w = d*q. */
function convertQ80(matrix: WeightMatrix): NBitsMatrix {
	const { outputs, inputs } = matrix;
	const { view, packed, scales } = emptyMatrix(matrix, 8, 32);
	for (let block = 0; block < scales.length; block++) {
		scales[block] = f16ToF32(view.getUint16(block * 34, true));
		for (let i = 0; i < 32; i++) packed[block * 32 + i] = 128 + view.getInt8(block * 34 + 2 + i);
	}
	return { outputs, inputs, bits: 8, blockSize: 32, packed, scales };
}
