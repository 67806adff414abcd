import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anyMatrix, anyRow } from "../../../test/support/any-matrix.ts";
import { hasDevice, openAnyDevice } from "../../../test/support/device.ts";
import { runs } from "../../../test/support/long.ts";
import { formatOf } from "../../model/ggml-types.ts";
import { type ExpertWeights, type TensorType, tensorTypes, type WeightMatrix } from "../../model/weight-matrix.ts";
import { combine, expertQuantisedRow, expertRow, multiplyRow, quantiseRow } from "../reference.ts";
import { halvesAt } from "../self-check-inputs.ts";
import { GpuEngine } from "./gpu-engine.ts";

// The shaders against the plain loops of reference.ts, bit for bit.

const types = Object.keys(tensorTypes) as TensorType[];
const memoryBytes = 2 ** 26;
/** A driver that computes on the CPU also compiles on the CPU. */
const slowMs = runs(300_000, 1_800_000);
let engine: GpuEngine;
let plain: GpuEngine;
beforeAll(async () => {
	if (!hasDevice) return;
	engine = new GpuEngine(await openAnyDevice(), memoryBytes);
	plain = new GpuEngine(await openAnyDevice(), memoryBytes, false);
});
afterAll(async () => {
	await engine?.close();
	await plain?.close();
});

const bits = (values: Float32Array) => new Uint32Array(values.buffer, values.byteOffset, values.length);
const joined = (rows: readonly Float32Array[]) => Float32Array.from(rows.flatMap((row) => [...row]));

async function expectEqual(matrix: WeightMatrix, rows: readonly Float32Array[], use = engine): Promise<void> {
	const group = await use.group("property", [matrix]);
	const [y] = await group.multiply(joined(rows), rows.length);
	await group.close();
	expect(bits(y!)).toEqual(bits(joined(rows.map((row) => multiplyRow(matrix, row)))));
}

/** A length that fits the type: a short last block of 256 among those that may have one. */
function lengthFor(type: TensorType, blocks: number, odd: number): number {
	const { elements } = formatOf(type);
	if (elements === 256) return 256 * Math.ceil(blocks / 3);
	return elements === 32 ? 32 * blocks : 17 * blocks + odd;
}

const shapes = fc.record({
	outputs: fc.integer({ min: 1, max: 37 }),
	blocks: fc.integer({ min: 1, max: 9 }),
	rows: fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.integer({ min: 10, max: 70 })),
	seed: fc.integer(),
});

describe.skipIf(!hasDevice).each(types)("%s on the device", { timeout: slowMs }, (type) => {
	it("equals the reference for any weights, rows and shape", async () => {
		await fc.assert(
			fc.asyncProperty(shapes, async ({ outputs, blocks, rows, seed }) => {
				const inputs = lengthFor(type, blocks, seed & 3);
				const given = Array.from({ length: rows }, (_, r) => anyRow(inputs, seed + r * 7919));
				await expectEqual(anyMatrix(type, outputs, inputs, seed), given);
			}),
			{
				numRuns: runs(formatOf(type).elements > 1 ? 15 : 5, 100),
				examples: [[{ outputs: 9, blocks: 9, rows: 70, seed: 1 }]],
			},
		);
	});

	it("equals the reference at the bounds of its integers", async () => {
		const inputs = 512;
		const extremes = [8191, -8191].map((value) => new Float32Array(inputs).fill(value));
		const alternating = new Float32Array(inputs).map((_, i) => (i % 2 ? 8191 : -8191));
		for (const byte of type === "F32" || type === "BF16" ? [0x3f, 0x41] : [0xff, 0x80, 0x7f, 0x00]) {
			await expectEqual(anyMatrix(type, 8, inputs, 99, byte), [...extremes, alternating]);
		}
	});

	it("refuses a weight, a row and a result that is not finite", async () => {
		const bad = anyMatrix(type, 3, 256, 5);
		const view = new DataView(bad.bytes.buffer);
		const last = bad.bytes.length - formatOf(type).bytes;
		if (type === "F32") view.setFloat32(last, Number.NaN, true);
		else view.setUint16(last + (halvesAt[type].at(-1) ?? 0), type === "BF16" ? 0x7f80 : 0x7c00, true);
		await expect(engine.group("bad", [bad])).rejects.toMatchObject({ code: "bad_weights" });

		const group = await engine.group("rows", [anyMatrix(type, 3, 512, 5)]);
		for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
			const x = new Float32Array(5 * 512);
			x[4 * 512 + 511] = value;
			await expect(group.multiply(x, 5)).rejects.toMatchObject({ code: "non_finite", facts: { where: "row" } });
		}
		const large = new Float32Array(512).fill(3e38);
		await expect(group.multiply(large, 1)).rejects.toMatchObject({ facts: { where: "result" } });
		await group.close();
	});
});

describe.skipIf(!hasDevice)("an expert on the device", { timeout: slowMs }, () => {
	// Floats are slow on a driver that computes on the CPU, and have their own tests above.
	const typeOf = fc.constantFrom(...types, "Q4_K" as const, "Q5_K" as const, "Q6_K" as const, "Q8_0" as const);
	const experts = fc.record({
		gate: typeOf,
		up: typeOf,
		down: typeOf,
		hidden: fc.constantFrom(256, 512),
		width: fc.constantFrom(256),
		count: fc.integer({ min: 1, max: 3 }),
		rows: fc.integer({ min: 1, max: 9 }),
		summed: fc.boolean(),
		quantised: fc.boolean(),
		seed: fc.integer(),
	});

	it("equals the reference for any types, plain or quantised rows, pairs or whole rows", async () => {
		await fc.assert(
			fc.asyncProperty(experts, async ({ hidden, width, count, rows, summed, seed, ...types }) => {
				const weights = Array.from(
					{ length: count },
					(_, e): ExpertWeights => ({
						gate: tame(anyMatrix(types.gate, width, hidden, seed + e)),
						up: tame(anyMatrix(types.up, width, hidden, seed + e + 100)),
						down: tame(anyMatrix(types.down, hidden, width, seed + e + 200)),
					}),
				);
				const given = Array.from({ length: rows }, (_, r) => anyRow(hidden, seed + r).map((v) => v * 2 ** -50));
				const quantised = types.quantised && [types.gate, types.up].every((type) => formatOf(type).elements > 1);
				for (const [e, expert] of weights.entries()) await engine.load(3, e, expert);
				const weight = Float32Array.from({ length: rows * count }, (_, i) => 1 / (1 + i));
				const cut = given.map(quantiseRow);
				const answer = await engine.compute({
					layer: 3,
					rowCount: rows,
					rows: quantised
						? {
								dtype: "q14",
								q: Int16Array.from(cut.flatMap(({ q }) => [...q])),
								scales: joined(cut.map(({ scales }) => scales)),
							}
						: { dtype: "f32", values: joined(given) },
					rowIndex: Uint16Array.from({ length: rows * count }, (_, pair) => Math.floor(pair / count)),
					expert: Uint16Array.from({ length: rows * count }, (_, pair) => pair % count),
					...(summed ? { weight } : {}),
				});
				const expected = given.map((row, r) => {
					const vectors = weights.map((expert) =>
						quantised ? expertQuantisedRow(expert, cut[r]!) : expertRow(expert, row),
					);
					return summed ? combine(vectors, weight.subarray(r * count, (r + 1) * count)) : joined(vectors);
				});
				expect(bits(answer)).toEqual(bits(joined(expected)));
			}),
			{ numRuns: runs(12, 100) },
		);
	});

	it("computes the same without packed dot products", async () => {
		for (const type of ["Q4_K", "Q5_K", "Q6_K", "Q8_0"] as const) {
			const rows = Array.from({ length: 11 }, (_, r) => anyRow(512, r + 1).map((v) => v * 2 ** -20));
			await expectEqual(anyMatrix(type, 21, 512, 77), rows, plain);
		}
	});

	it("refuses an expert it does not hold, quantised rows for float weights, and more than its memory", async () => {
		const batch = { layer: 9, rowCount: 1, rowIndex: Uint16Array.of(0), expert: Uint16Array.of(1) };
		const values = new Float32Array(256);
		await expect(engine.compute({ ...batch, rows: { dtype: "f32", values } })).rejects.toMatchObject({
			code: "engine_failed",
		});
		const floats = { gate: anyMatrix("F16", 32, 256, 1), up: anyMatrix("F16", 32, 256, 2) };
		await engine.load(9, 1, { ...floats, down: anyMatrix("F16", 256, 32, 3) });
		const rows = { dtype: "q14", q: new Int16Array(256), scales: new Float32Array(1) } as const;
		await expect(engine.compute({ ...batch, rows })).rejects.toMatchObject({ code: "unsupported_type" });
		await engine.unload(9, 1);
		const before = engine.bytesHeld;
		const large = anyMatrix("F32", 4096, 4352, 1, 0);
		await expect(engine.group("large", [large])).rejects.toMatchObject({
			code: "out_of_memory",
			message: expect.stringContaining(`of its ${memoryBytes} bytes`),
		});
		expect(engine.bytesHeld).toBe(before);
	});
});

/** Scales small enough that no product overflows. */
function tame(matrix: WeightMatrix): WeightMatrix {
	const view = new DataView(matrix.bytes.buffer);
	const { bytes } = formatOf(matrix.type);
	for (let at = 0; at < matrix.bytes.length; at += bytes) {
		for (const offset of halvesAt[matrix.type]) {
			view.setUint16(at + offset, view.getUint16(at + offset, true) & 0x9fff, true);
		}
		if (matrix.type === "F32") view.setUint16(at + 2, view.getUint16(at + 2, true) & 0xbfff, true);
		if (matrix.type === "BF16") view.setUint16(at, view.getUint16(at, true) & 0xbfff, true);
	}
	return matrix;
}
