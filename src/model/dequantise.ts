import { KvasirError } from "../errors.ts";
import { dequantiseQ4K, dequantiseQ5K, dequantiseQ6K } from "./dequantise-k.ts";
import { dequantiseBF16, dequantiseF16, dequantiseF32, dequantiseQ8 } from "./dequantise-plain.ts";
import { formatOf } from "./ggml-types.ts";
import type { TensorType } from "./weight-matrix.ts";

type Dequantise = (view: DataView, out: Float32Array) => void;

const byType: Readonly<Record<TensorType, Dequantise>> = {
	F32: dequantiseF32,
	F16: dequantiseF16,
	BF16: dequantiseBF16,
	Q8_0: dequantiseQ8,
	Q4_K: dequantiseQ4K,
	Q5_K: dequantiseQ5K,
	Q6_K: dequantiseQ6K,
};

/** The weights of raw GGUF blocks as binary32, in element order; bit-equal to ggml's dequantize_row. Throws `unsupported_shape` for a cut block. */
export function dequantise(bytes: Uint8Array, type: TensorType): Float32Array {
	const format = formatOf(type);
	if (bytes.length % format.bytes !== 0) {
		const state = `${bytes.length} bytes are no whole number of ${type} blocks of ${format.bytes}`;
		throw new KvasirError("unsupported_shape", `Cannot dequantise weights: ${state}`);
	}
	const out = new Float32Array((bytes.length / format.bytes) * format.elements);
	byType[type](new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), out);
	return out;
}
