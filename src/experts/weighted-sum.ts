/**
 * The combine of numerics.md section 2 for one row: `acc = +0; acc = r32(acc + r32(w_r * y_r))` for rank r = 0..ranks-1.
 *
 * @param out gets `hidden` values at `outStart`
 * @param vectors the y_r, one after the other from `start`
 * @param weights the w_r from `weightStart`
 */
export function weightedSum(
	out: Float32Array,
	outStart: number,
	hidden: number,
	vectors: Float32Array,
	start: number,
	weights: Float32Array,
	weightStart: number,
	ranks: number,
): void {
	out.fill(0, outStart, outStart + hidden);
	for (let rank = 0; rank < ranks; rank++) {
		const weight = weights[weightStart + rank]!;
		const vectorStart = start + rank * hidden;
		for (let i = 0; i < hidden; i++) {
			out[outStart + i] = Math.fround(out[outStart + i]! + Math.fround(weight * vectors[vectorStart + i]!));
		}
	}
}
