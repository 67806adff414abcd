import { f16ToF32 } from "./half.ts";

/** Copies little-endian binary32. */
export function dequantiseF32(view: DataView, out: Float32Array): void {
	for (let i = 0; i < out.length; i++) out[i] = view.getFloat32(4 * i, true);
}

/** Widens binary16, exactly. */
export function dequantiseF16(view: DataView, out: Float32Array): void {
	for (let i = 0; i < out.length; i++) out[i] = f16ToF32(view.getUint16(2 * i, true));
}

/** Widens bfloat16 (the upper half of a binary32), exactly. */
export function dequantiseBF16(view: DataView, out: Float32Array): void {
	const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
	for (let i = 0; i < bits.length; i++) bits[i] = view.getUint16(2 * i, true) << 16;
}

/** Q8_0: per 32 weights a binary16 scale and 32 signed bytes. */
export function dequantiseQ8(view: DataView, out: Float32Array): void {
	for (let block = 0, at = 0; block < out.length; block += 32, at += 34) {
		const d = f16ToF32(view.getUint16(at, true));
		for (let i = 0; i < 32; i++) out[block + i] = d * view.getInt8(at + 2 + i);
	}
}
