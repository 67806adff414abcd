/** True when no value is an infinity or NaN. */
export function allFinite(values: Float32Array): boolean {
	let spoiled = 0; // 0 * x is 0 for every finite x, NaN otherwise
	for (let i = 0; i < values.length; i++) spoiled += values[i]! * 0;
	return spoiled === 0;
}
