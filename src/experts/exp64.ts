/** 1/k! for k = 0..13, each the nearest binary64. */
const coefficients = [1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600, 6227020800].map(
	(factorial) => 1 / factorial,
);

/** Adding and subtracting 1.5 x 2^52 rounds a double to the nearest integer, ties to even. */
const roundingShift = 6755399441055744;

const bits = new DataView(new ArrayBuffer(8));

/** e^z with the same eight bytes everywhere, unlike Math.exp (numerics.md section 2, exp64). */
export function exp64(z: number): number {
	const clamped = Math.min(708, Math.max(-708, z));
	const n = clamped * Math.LOG2E + roundingShift - roundingShift;
	const r = clamped - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
	let p = coefficients[13]!;
	for (let k = 12; k >= 0; k--) p = p * r + coefficients[k]!;
	bits.setFloat64(0, p);
	bits.setUint32(0, bits.getUint32(0) + n * 2 ** 20); // n joins the exponent bits
	return bits.getFloat64(0);
}
