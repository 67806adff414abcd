import { KvasirError } from "../../errors.ts";
import { allFinite } from "../../experts/finite.ts";

// Arithmetic on rows of activations. Every result is a function of its own row alone, in a fixed order of additions.

/**
 * `out[r] = rows[r] / sqrt(mean(rows[r]^2) + epsilon) * weight`: sums in binary64 over four interleaved lanes, one rounding
 * to binary32 at the end. Throws `non_finite` naming `where`: squares of finite binary32 values never overflow binary64.
 *
 * @param rows (count, weight.length)
 */
export function normRows(
	rows: Float32Array,
	count: number,
	weight: Float32Array,
	epsilon: number,
	out: Float32Array,
	where: string,
): void {
	const width = weight.length;
	for (let row = 0; row < count; row++) {
		const start = row * width;
		const scale = rootMeanSquareScale(rows, start, width, epsilon);
		if (!Number.isFinite(scale)) throw nonFinite(where);
		for (let i = 0; i < width; i++) out[start + i] = rows[start + i]! * scale * weight[i]!;
	}
}

/** `1 / sqrt(mean(x^2) + epsilon)` over `width` values from `start`; NaN where one is not finite. */
function rootMeanSquareScale(rows: Float32Array, start: number, width: number, epsilon: number): number {
	const end = start + width;
	let a = 0;
	let b = 0;
	let c = 0;
	let d = 0;
	let i = start;
	for (; i + 3 < end; i += 4) {
		a += rows[i]! * rows[i]!;
		b += rows[i + 1]! * rows[i + 1]!;
		c += rows[i + 2]! * rows[i + 2]!;
		d += rows[i + 3]! * rows[i + 3]!;
	}
	for (; i < end; i++) a += rows[i]! * rows[i]!;
	const sum = a + b + (c + d);
	return Number.isFinite(sum) ? 1 / Math.sqrt(sum / width + epsilon) : Number.NaN;
}

/** `rows += more`, element by element, each rounded to binary32. */
export function addRows(rows: Float32Array, more: Float32Array, length: number): void {
	for (let i = 0; i < length; i++) rows[i] = rows[i]! + more[i]!;
}

/** Throws `non_finite` naming `where` when a value is an infinity or NaN. */
export function requireFinite(values: Float32Array, where: string): void {
	if (!allFinite(values)) throw nonFinite(where);
}

/** The error of a value that is an infinity or NaN at the place `where`. */
export function nonFinite(where: string): KvasirError {
	return new KvasirError("non_finite", `Cannot decode: ${where} is not finite`, { facts: { where } });
}

/** Adds to a `non_finite` error, from here or from an engine, the layer it happened in; leaves others alone. */
export function namingLayer(error: unknown, layer: number): unknown {
	if (!(error instanceof KvasirError) || error.code !== "non_finite") return error;
	const { where } = error.facts;
	const what = where === "row" || where === "result" ? `a ${where} of a matrix or expert` : where;
	return new KvasirError("non_finite", `Cannot decode layer ${layer}: ${what} is not finite`, {
		cause: error,
		facts: { ...error.facts, layer },
	});
}
