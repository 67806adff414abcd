import fc from "fast-check";
import { expect, test } from "vitest";
import { KvasirError } from "../../errors.ts";
import { addRows, namingLayer, normRows, requireFinite } from "./rows.ts";

const floats = (length: number) =>
	fc.array(fc.float({ noNaN: true, min: -1e6, max: 1e6 }), { minLength: length, maxLength: length });

test("normRows() is the RMS norm of each row, whatever its width and the other rows", () => {
	fc.assert(
		fc.property(
			fc.integer({ min: 1, max: 13 }),
			fc.infiniteStream(fc.float({ noNaN: true, min: -99, max: 99 })),
			(width, stream) => {
				const take = (count: number) => Float32Array.from([...stream.take(count)]);
				const [rows, weight] = [take(3 * width), take(width)];
				const out = new Float32Array(rows.length);
				normRows(rows, 3, weight, 1e-6, out, "here");
				for (let row = 0; row < 3; row++) {
					const mine = rows.subarray(row * width, (row + 1) * width);
					const square = mine.reduce((sum, value) => sum + value ** 2, 0) / width;
					const alone = new Float32Array(width);
					normRows(mine, 1, weight, 1e-6, alone, "here");
					expect(alone).toEqual(out.subarray(row * width, (row + 1) * width));
					for (let i = 0; i < width; i++) {
						const expected = (mine[i]! / Math.sqrt(square + 1e-6)) * weight[i]!;
						expect(Math.abs(alone[i]! - expected)).toBeLessThanOrEqual(1e-5 * Math.abs(expected) + 1e-30);
					}
				}
			},
		),
	);
});

test("the largest values of binary32 do not overflow the norm; what is not finite is named", () => {
	const out = new Float32Array(4);
	const weight = new Float32Array(4).fill(1);
	normRows(new Float32Array(4).fill(3.4e38), 1, weight, 1e-6, out, "here");
	expect([...out]).toEqual([1, 1, 1, 1]);
	for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
		const rows = Float32Array.of(1, bad, 1, 1);
		const thrown = expect.objectContaining({ code: "non_finite", facts: { where: "here" } });
		expect(() => normRows(rows, 1, weight, 1e-6, out, "here")).toThrow(thrown);
		expect(() => requireFinite(rows, "here")).toThrow(thrown);
	}
	requireFinite(Float32Array.of(-0, 3.4e38, 1e-45), "here");
});

test("addRows() rounds each sum to binary32", () => {
	fc.assert(
		fc.property(floats(5), floats(5), (a, b) => {
			const rows = Float32Array.from(a);
			addRows(rows, Float32Array.from(b), 5);
			expect([...rows]).toEqual(a.map((value, i) => Math.fround(value + b[i]!)));
		}),
	);
});

test("an engine's non_finite error learns its layer, others stay as they are", () => {
	const engine = new KvasirError("non_finite", "Cannot compute: a row is not finite", { facts: { where: "row" } });
	expect(namingLayer(engine, 7)).toMatchObject({
		code: "non_finite",
		message: "Cannot decode layer 7: a row of a matrix or expert is not finite",
		facts: { layer: 7, where: "row" },
	});
	const other = new Error("other");
	expect(namingLayer(other, 7)).toBe(other);
});
