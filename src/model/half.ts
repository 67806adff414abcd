/** The 65,536 values of IEEE binary16, by their bits: widening is exact, and a table is the fastest way in JavaScript. */
const widened: Float32Array = makeTable();

/** The binary32 value of binary16 bits. */
export function f16ToF32(bits: number): number {
	return widened[bits]!;
}

function makeTable(): Float32Array {
	const table = new Float32Array(65_536);
	for (let bits = 0; bits < 65_536; bits++) {
		const exponent = (bits >> 10) & 31;
		const fraction = bits & 1023;
		const sign = bits & 0x8000 ? -1 : 1;
		if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
		else if (exponent === 31) table[bits] = fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
		else table[bits] = sign * (1024 + fraction) * 2 ** (exponent - 25);
	}
	return table;
}

/** The binary16 bits nearest to `value` (ties to even, as IEEE says); values too large become infinity. */
export function f32ToF16(value: number): number {
	const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
	const size = Math.abs(Math.fround(value));
	if (Number.isNaN(size)) return 0x7e00;
	if (size >= 65_520) return sign | 0x7c00;
	const exponent = size < 2 ** -14 ? -14 : Math.floor(Math.log2(size));
	const steps = roundToEven(size / 2 ** (exponent - 10));
	// A carry out of the fraction lands in the exponent by itself; subnormals have exponent bits 0.
	return sign | (size < 2 ** -14 ? steps : ((exponent + 15) << 10) + steps - 1024);
}

function roundToEven(value: number): number {
	const floor = Math.floor(value);
	const rest = value - floor;
	return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
