import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { anyMatrix, anyRow } from "../../../test/support/any-matrix.ts";
import { runs } from "../../../test/support/long.ts";
import { formatOf } from "../../model/ggml-types.ts";
import { f32ToF16 } from "../../model/half.ts";
import { type TensorType, tensorTypes, type WeightMatrix } from "../../model/weight-matrix.ts";
import { joinRows } from "../join-rows.ts";
import { multiplyRow } from "../reference.ts";
import { halvesAt } from "../self-check-inputs.ts";
import { openCanonicalEngine } from "./canonical-engine.ts";

// Kernels against the plain loops of reference.ts, bit for bit.

const types = Object.keys(tensorTypes) as TensorType[];
const engine = await openCanonicalEngine({ memoryBytes: 64 * 1024 ** 2 });
afterAll(() => engine.close());

const bits = (values: Float32Array) => new Uint32Array(values.buffer, values.byteOffset, values.length);

async function expectEqual(matrix: WeightMatrix, rows: readonly Float32Array[], use = engine): Promise<void> {
	const group = await use.group("property", [matrix]);
	const x = joinRows(rows);
	const [y] = await group.multiply(x, rows.length);
	await group.close();
	const expected = joinRows(rows.map((row) => multiplyRow(matrix, row)));
	expect(bits(y!)).toEqual(bits(expected));
}

const shapes = fc.record({
	outputs: fc.integer({ min: 1, max: 37 }),
	blocks: fc.integer({ min: 1, max: 9 }),
	rows: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 70 })),
	seed: fc.integer(),
});

describe.each(types)("%s", (type) => {
	test("equals the reference for any weights, rows and shape", async () => {
		await fc.assert(
			fc.asyncProperty(shapes, async ({ outputs, blocks, rows, seed }) => {
				const { elements } = formatOf(type);
				const inputs =
					elements === 256 ? 256 * Math.ceil(blocks / 3) : elements === 32 ? 32 * blocks : 17 * blocks + (seed & 3);
				const matrix = anyMatrix(type, outputs, inputs, seed);
				await expectEqual(
					matrix,
					Array.from({ length: rows }, (_, r) => anyRow(inputs, seed + r * 7919)),
				);
			}),
			{ numRuns: runs(25, 500) },
		);
	});

	test("equals the reference at the bounds of its integers", async () => {
		const inputs = 512;
		const extremes = [8191, -8191].map((value) => new Float32Array(inputs).fill(value));
		const alternating = new Float32Array(inputs).map((_, i) => (i % 2 ? 8191 : -8191));
		for (const byte of type === "F32" || type === "BF16" ? [0x3f, 0x41] : [0xff, 0x80, 0x7f, 0x00]) {
			const matrix = anyMatrix(type, 8, inputs, 99, byte);
			await expectEqual(matrix, [...extremes, alternating]);
			await expectEqual(matrix, [...extremes, alternating, ...extremes]);
		}
	});

	test("refuses a weight or scale that is not finite", async () => {
		const matrix = anyMatrix(type, 3, 256, 5);
		const view = new DataView(matrix.bytes.buffer);
		const last = matrix.bytes.length - formatOf(type).bytes;
		if (type === "F32") view.setFloat32(last, Number.NaN, true);
		else view.setUint16(last + (halvesAt[type].at(-1) ?? 0), type === "BF16" ? 0x7f80 : 0x7c00, true);
		await expect(engine.group("bad", [matrix])).rejects.toMatchObject({ code: "bad_weights" });
	});

	test("refuses a row or a result that is not finite", async () => {
		const group = await engine.group("rows", [anyMatrix(type, 3, 512, 5)]);
		for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
			for (const rows of [1, 5]) {
				const x = new Float32Array(rows * 512);
				x[(rows - 1) * 512 + 511] = bad;
				await expect(group.multiply(x, rows)).rejects.toMatchObject({ code: "non_finite", facts: { where: "row" } });
			}
		}
		await expect(group.multiply(new Float32Array(512).fill(3e38), 1)).rejects.toMatchObject({
			facts: { where: "result" },
		});
		await group.close();
	});
});

test("weights of binary16 subnormals, and a binary32 as large as binary16 goes, are widened exactly", async () => {
	const values = [6e-8, -6e-8, 6.09e-5, 65504, -65504, -0, 1 / 3];
	const bytes = new Uint8Array(Uint16Array.from(values, f32ToF16).buffer);
	await expectEqual({ type: "F16", outputs: 1, inputs: values.length, bytes }, [Float32Array.from(values)]);
});

test("shapes that do not fit the weight block are refused", async () => {
	const matrix = { type: "Q4_K", outputs: 2, inputs: 300, bytes: new Uint8Array(288) } as const;
	await expect(engine.group("odd", [matrix])).rejects.toMatchObject({ code: "unsupported_shape" });
	const short = { type: "Q8_0", outputs: 2, inputs: 64, bytes: new Uint8Array(135) } as const;
	await expect(engine.group("short", [short])).rejects.toMatchObject({ code: "bad_weights" });
});

test.each([
	[2, true],
	[3, true],
	[1, false],
	[2, false],
	[4, false],
])("%i threads, the caller among them: %s: the same bits", async (threads, inCaller) => {
	const other = await openCanonicalEngine({ memoryBytes: 8 * 1024 ** 2, threads, inCaller });
	for (const [i, type] of types.entries()) {
		const matrices = [anyMatrix(type, 777, 512, i + 1), anyMatrix("Q4_K", 40, 512, i + 50)];
		const group = await other.group("threads", matrices);
		for (const rows of [1, 3, 70]) {
			const given = Array.from({ length: rows }, (_, r) => anyRow(512, r * 31 + i).map((v) => v * 2 ** -20));
			const outs = await group.multiply(joinRows(given), rows);
			for (const [m, matrix] of matrices.entries()) {
				const expected = joinRows(given.slice(-3).map((row) => multiplyRow(matrix, row)));
				expect(bits(outs[m]!.slice(-expected.length))).toEqual(bits(expected));
			}
		}
		await group.close();
	}
	await other.close();
});
