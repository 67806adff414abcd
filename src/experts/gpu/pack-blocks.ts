import type { Rows } from "../engine.ts";

/**
 * Activation blocks as the wire has them (int16 q, f32 scales) in the layout of wgsl-rows.ts: four q in two words
 * (high parts q >> 7, low parts q & 127), sums of 16, scales; a short last block padded with zeros.
 */
export function packBlocks(
	rows: Extract<Rows, { dtype: "q14" }>,
	width: number,
	first: number,
	count: number,
): { packed: Uint32Array; sums: Int32Array; scales: Float32Array } {
	const blocks = Math.ceil(width / 256);
	const packed = new Uint32Array(count * blocks * 128);
	const sums = new Int32Array(count * blocks * 16);
	for (let row = 0; row < count; row++) {
		for (let k = 0; k < width; k++) {
			const q = rows.q[(first + row) * width + k]!;
			const at = row * blocks * 256 + k;
			const shift = (k & 3) * 8;
			packed[(at >> 2) * 2]! |= ((q >> 7) & 255) << shift;
			packed[(at >> 2) * 2 + 1]! |= (q & 127) << shift;
			sums[at >> 4]! += q;
		}
	}
	return { packed, sums, scales: rows.scales.subarray(first * blocks, (first + count) * blocks) };
}
