import fc from "fast-check";
import { expect, test } from "vitest";
import { LogitsComparison } from "./compare-logits.ts";

test("equal rows are identical", () => {
	const comparison = new LogitsComparison();
	expect(comparison.add(Float32Array.of(1, 3, 2), Float32Array.of(1, 3, 2))).toBe(true);
	expect(comparison.report()).toEqual({
		identical: true,
		positions: 1,
		argmaxSame: 1,
		cosineMin: 1,
		cosineMean: 1,
		cosineMedian: 1,
		maxAbs: 0,
		klMax: 0,
	});
});

test("-0 against 0 is not identical, though equal", () => {
	const comparison = new LogitsComparison();
	comparison.add(Float32Array.of(0, 1), Float32Array.of(-0, 1));
	expect(comparison.report()).toMatchObject({ identical: false, argmaxSame: 1, cosineMin: 1, maxAbs: 0 });
});

test("cosines, the largest difference and the divergence are those of the worst position", () => {
	const comparison = new LogitsComparison();
	comparison.add(Float32Array.of(1, 0), Float32Array.of(1, 0));
	comparison.add(Float32Array.of(1, 0), Float32Array.of(0, 1));
	comparison.add(Float32Array.of(3, 4), Float32Array.of(4, 3));
	const report = comparison.report();
	expect(report).toMatchObject({ identical: false, positions: 3, argmaxSame: 1, cosineMin: 0, maxAbs: 1 });
	expect(report.cosineMedian).toBeCloseTo(0.96, 12);
	expect(report.cosineMean).toBeCloseTo(1.96 / 3, 12);
	// softmax(1, 0) = (p, 1 - p): KL = (2p - 1) * 1
	const p = Math.E / (1 + Math.E);
	expect(report.klMax).toBeCloseTo(2 * p - 1, 12);
});

test("for any rows: cosine in [-1, 1], KL not negative, argmax by value with ties to the lowest id", () => {
	const row = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true, min: -50, max: 50 }), {
		minLength: 4,
		maxLength: 4,
	});
	fc.assert(
		fc.property(row, row, (a, b) => {
			const comparison = new LogitsComparison();
			const same = comparison.add(Float32Array.from(a), Float32Array.from(b));
			const first = (values: number[]) => values.indexOf(Math.max(...values));
			expect(same).toBe(first(a) === first(b));
			const { cosineMin, klMax } = comparison.report();
			expect(Math.abs(cosineMin)).toBeLessThanOrEqual(1 + 1e-12);
			expect(klMax).toBeGreaterThanOrEqual(0);
		}),
	);
});
