import type { Dtype } from "./messages.ts";
import { malformed, outOfBounds } from "./wire-error.ts";

// Tensors as they lie in a message: little-endian, of no particular alignment. All supported hosts are little-endian, so one
// copy of bytes into fresh (aligned) memory is the whole decoding; nobody lays a Float32Array over a received buffer.

/** Activation values in one block of canonical-1 (numerics.md section 2). */
export const activationBlock = 256;
/** The largest |q| of dtype q14. */
const q14Max = 8191;

/** Bytes of `rows` rows of `hidden` values: f32 4 a value, f16 2, q14 2 and an f32 scale for each block of 256. */
export function tensorBytes(dtype: Dtype, rows: number, hidden: number): number {
	if (dtype === "f32") return rows * hidden * 4;
	if (dtype === "f16") return rows * hidden * 2;
	return rows * (hidden * 2 + Math.ceil(hidden / activationBlock) * 4);
}

/** Copies an f32 tensor out of a message. */
export function floatsOfTensor(tensor: Uint8Array): Float32Array {
	if (tensor.length % 4 !== 0) throw malformed("tensor", `${tensor.length} bytes are not f32 values`);
	const values = new Float32Array(tensor.length / 4);
	new Uint8Array(values.buffer).set(tensor);
	return values;
}

/** The bytes of floats, uncopied: the floats must not change until the message is sent. */
export function tensorOfFloats(values: Float32Array): Uint8Array {
	return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** Rows in canonical-1's activation blocks. */
export interface Q14Rows {
	/** (rows, hidden) */
	readonly q: Int16Array;
	/** (rows, ceil(hidden / 256)) */
	readonly scales: Float32Array;
}

/** Copies a q14 tensor out of a message. Throws `bounds` for |q| above 8191 or a scale that is negative or not finite. */
export function q14OfTensor(tensor: Uint8Array, rows: number, hidden: number): Q14Rows {
	if (tensor.length !== tensorBytes("q14", rows, hidden)) {
		throw malformed("rows", `${tensor.length} bytes are not ${rows} rows of ${hidden} in q14`);
	}
	const qBytes = rows * hidden * 2;
	const q = new Int16Array(rows * hidden);
	new Uint8Array(q.buffer).set(tensor.subarray(0, qBytes));
	const scales = floatsOfTensor(tensor.subarray(qBytes));
	for (let i = 0; i < q.length; i++) {
		if (q[i]! > q14Max || q[i]! < -q14Max) throw outOfBounds("rows", `q ${q[i]} is beyond ${q14Max}`);
	}
	for (const scale of scales) {
		if (!(scale >= 0 && scale < Number.POSITIVE_INFINITY) || Object.is(scale, -0)) {
			throw outOfBounds("rows", `the scale ${Object.is(scale, -0) ? "-0" : scale} is negative or not finite`);
		}
	}
	return { q, scales };
}

/** Lays q14 rows out for a message: all q, then all scales. */
export function tensorOfQ14({ q, scales }: Q14Rows): Uint8Array {
	const tensor = new Uint8Array(q.byteLength + scales.byteLength);
	tensor.set(new Uint8Array(q.buffer, q.byteOffset, q.byteLength));
	tensor.set(new Uint8Array(scales.buffer, scales.byteOffset, scales.byteLength), q.byteLength);
	return tensor;
}
