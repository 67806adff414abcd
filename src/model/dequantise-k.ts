import { f16ToF32 } from "./half.ts";

// The K-quants of ggml-quants.c: super-blocks of 256 weights. Math.fround marks each binary32 rounding that C makes;
// the final store into a Float32Array is the last one.

/** The j-th (0..7) 6-bit scale of the 12 packed bytes at `at`. */
function scaleOf(view: DataView, at: number, j: number): number {
	if (j < 4) return view.getUint8(at + j) & 63;
	return (view.getUint8(at + j + 4) & 15) | ((view.getUint8(at + j - 4) >> 6) << 4);
}

/** The j-th (0..7) 6-bit minimum of the 12 packed bytes at `at`. */
function minimumOf(view: DataView, at: number, j: number): number {
	if (j < 4) return view.getUint8(at + j + 4) & 63;
	return (view.getUint8(at + j + 4) >> 4) | ((view.getUint8(at + j) >> 6) << 4);
}

/** Q4_K, 144 bytes: d, dmin, 12 bytes of scales and minima, 128 bytes of nibbles; w = d*sc*q - dmin*m. */
export function dequantiseQ4K(view: DataView, out: Float32Array): void {
	for (let block = 0, at = 0; block < out.length; block += 256, at += 144) {
		const d = f16ToF32(view.getUint16(at, true));
		const dmin = f16ToF32(view.getUint16(at + 2, true));
		for (let j = 0; j < 8; j++) {
			const scale = Math.fround(d * scaleOf(view, at + 4, j));
			const minimum = Math.fround(dmin * minimumOf(view, at + 4, j));
			const qs = at + 16 + 32 * (j >> 1);
			const shift = 4 * (j & 1);
			for (let i = 0; i < 32; i++) {
				const q = (view.getUint8(qs + i) >> shift) & 15;
				out[block + 32 * j + i] = Math.fround(scale * q) - minimum;
			}
		}
	}
}

/** Q5_K, 176 bytes: as Q4_K, with 32 bytes of fifth bits (bit j of byte i: weight i of sub-block j) before the nibbles. */
export function dequantiseQ5K(view: DataView, out: Float32Array): void {
	for (let block = 0, at = 0; block < out.length; block += 256, at += 176) {
		const d = f16ToF32(view.getUint16(at, true));
		const dmin = f16ToF32(view.getUint16(at + 2, true));
		for (let j = 0; j < 8; j++) {
			const scale = Math.fround(d * scaleOf(view, at + 4, j));
			const minimum = Math.fround(dmin * minimumOf(view, at + 4, j));
			const qs = at + 48 + 32 * (j >> 1);
			const shift = 4 * (j & 1);
			for (let i = 0; i < 32; i++) {
				const fifth = (view.getUint8(at + 16 + i) >> j) & 1;
				const q = ((view.getUint8(qs + i) >> shift) & 15) | (fifth << 4);
				out[block + 32 * j + i] = Math.fround(scale * q) - minimum;
			}
		}
	}
}

/** Q6_K, 210 bytes: 128 of low nibbles, 64 of high bit pairs, 16 signed scales (one per 16 weights), d; w = d*sc*(q-32). */
export function dequantiseQ6K(view: DataView, out: Float32Array): void {
	for (let block = 0, at = 0; block < out.length; block += 256, at += 210) {
		const d = f16ToF32(view.getUint16(at + 208, true));
		for (let i = 0; i < 256; i++) {
			const half = i >> 7;
			const quarter = (i >> 5) & 3;
			const lane = i & 31;
			const low = view.getUint8(at + 64 * half + 32 * (quarter & 1) + lane) >> (4 * (quarter >> 1));
			const high = view.getUint8(at + 128 + 32 * half + lane) >> (2 * quarter);
			const q = ((low & 15) | ((high & 3) << 4)) - 32;
			out[block + i] = Math.fround(d * view.getInt8(at + 192 + (i >> 4))) * q;
		}
	}
}
