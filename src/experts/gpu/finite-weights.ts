import { formatOf } from "../../model/ggml-types.ts";
import type { TensorType, WeightMatrix } from "../../model/weight-matrix.ts";

/** Where the binary16 scales of a block lie; none where the weights themselves are floats. */
const scalesAt: Readonly<Partial<Record<TensorType, readonly number[]>>> = {
	Q4_K: [0, 2],
	Q5_K: [0, 2],
	Q6_K: [208],
	Q8_0: [0],
	F16: [0],
};

/** Whether every weight, or every scale of the weights, is finite (numerics.md section 2, "Refusals"). */
export function weightsAreFinite({ type, bytes }: WeightMatrix): boolean {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	const step = formatOf(type).bytes;
	for (const offset of scalesAt[type] ?? []) {
		for (let at = offset; at < bytes.length; at += step)
			if ((view.getUint16(at, true) & 0x7c00) === 0x7c00) return false;
	}
	// The exponent of bfloat16, and of binary32's upper half.
	const upper = type === "F32" ? 2 : type === "BF16" ? 0 : null;
	if (upper === null) return true;
	for (let at = upper; at < bytes.length; at += step) if ((view.getUint16(at, true) & 0x7f80) === 0x7f80) return false;
	return true;
}
