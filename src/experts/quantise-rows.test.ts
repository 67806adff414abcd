import fc from "fast-check";
import { expect, it } from "vitest";
import { quantiseRows } from "./quantise-rows.ts";
import { quantiseRow } from "./reference.ts";

const magnitudes = [0, -0, 1, 2 ** -64, 2 ** -65, 2 ** -149, 3e38, 1e-20];

it("equals the definition bit for bit: rows of any length, zeros, ties, tiny and huge values", () => {
	const value = fc.oneof(fc.float({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(...magnitudes));
	const rows = fc.tuple(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 1, max: 3 })).chain(([hidden, count]) =>
		fc.record({
			hidden: fc.constant(hidden),
			count: fc.constant(count),
			values: fc.array(value, { minLength: hidden * count, maxLength: hidden * count }),
		}),
	);
	fc.assert(
		fc.property(rows, ({ hidden, count, values }) => {
			const all = Float32Array.from(values);
			const { q, scales } = quantiseRows(all, count, hidden);
			const blocks = Math.ceil(hidden / 256);
			for (let row = 0; row < count; row++) {
				const expected = quantiseRow(all.subarray(row * hidden, (row + 1) * hidden));
				expect(q.subarray(row * hidden, (row + 1) * hidden)).toEqual(expected.q);
				expect(scales.subarray(row * blocks, (row + 1) * blocks)).toEqual(expected.scales);
			}
		}),
		{ numRuns: 60 },
	);
});
