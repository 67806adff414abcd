import { afterAll, describe, expect, test } from "vitest";
import { packagePath } from "../../io/built.ts";
import { openModel } from "../../model/open-model.ts";
import type { ExpertWeights, WeightMatrix } from "../../model/weight-matrix.ts";
import type { ExpertBatch } from "../engine.ts";
import { combine, expertRow, quantiseRow } from "../reference.ts";
import { makeMatrix, makePlainRows, xorshift } from "../self-check-inputs.ts";
import { openCanonicalEngine } from "./canonical-engine.ts";
import { workSpace } from "./layout.ts";
import { splitBatch } from "./split-batch.ts";

// Experts of the tiny models: Q4_K and Q6_K (Q4_K_M), Q4_K with Q5_K or Q6_K down (UD).

const megabyte = 1024 ** 2;
const model = await openModel(packagePath("fixtures/reference/kvasir-tiny-35moe-UD-Q4_K_XL.gguf"));
const weightsOf = await Promise.all(Array.from({ length: 16 }, (_, e) => model.weights.expert(1, e)));
afterAll(() => model.weights.close());

const { hidden } = model.shape;
const bits = (values: Float32Array) => new Uint32Array(values.buffer, values.byteOffset, values.length);

/** Rows of all sizes, from a sine: the bytes do not matter, only that they differ. */
const makeRow = (seed: number) =>
	Float32Array.from({ length: hidden }, (_, i) => Math.sin(i * 1.7 + seed) * (seed + 1));

/** Rows with k experts each; some experts get many rows and some none. */
function makeBatch(rowCount: number, k: number, weighted: boolean): ExpertBatch {
	const rows = Array.from({ length: rowCount }, (_, r) => makeRow(r));
	const pairs = Array.from({ length: rowCount * k }, (_, p) => ({
		row: Math.floor(p / k),
		expert: (p % k) * 3 + (Math.floor(p / k) % 3),
	}));
	return {
		layer: 1,
		rowCount,
		rows: { dtype: "f32", values: Float32Array.from(rows.flatMap((row) => [...row])) },
		rowIndex: Uint16Array.from(pairs, ({ row }) => row),
		expert: Uint16Array.from(pairs, ({ expert }) => expert),
		...(weighted && { weight: Float32Array.from(pairs, (_, p) => 1 / (p + 1.5)) }),
	};
}

const expectedPairs = (batch: ExpertBatch): Float32Array[] =>
	Array.from(batch.expert, (expert, p) => expertRow(weightsOf[expert]!, makeRow(batch.rowIndex[p]!)));

const joined = (rows: readonly Float32Array[]) => Float32Array.from(rows.flatMap((row) => [...row]));

async function openLoaded(threads: number, inCaller: boolean) {
	const engine = await openCanonicalEngine({ memoryBytes: 16 * megabyte, threads, inCaller });
	for (const [e, weights] of weightsOf.entries()) await engine.load(1, e, weights);
	return engine;
}

describe.each([
	[1, true],
	[2, true],
	[1, false],
	[3, false],
])("%i threads, the caller among them: %s", (threads, inCaller) => {
	test.each([1, 2, 40])("compute() gives the reference's vectors for %i rows of 4 experts", async (rowCount) => {
		const engine = await openLoaded(threads, inCaller);
		const batch = makeBatch(rowCount, 4, false);
		const pairs = expectedPairs(batch);
		expect(bits(await engine.compute(batch))).toEqual(bits(joined(pairs)));

		const weighted = makeBatch(rowCount, 4, true);
		const sums = Array.from({ length: rowCount }, (_, r) =>
			combine(pairs.slice(r * 4, r * 4 + 4), weighted.weight!.subarray(r * 4, r * 4 + 4)),
		);
		expect(bits(await engine.compute(weighted))).toEqual(bits(joined(sums)));
		await engine.close();
	});

	test("calls made at once are answered each with its own vectors", async () => {
		const engine = await openLoaded(threads, inCaller);
		const batches = [1, 5, 2, 9].map((rows) => makeBatch(rows, 3, false));
		const answers = await Promise.all(batches.map((batch) => engine.compute(batch)));
		for (const [i, batch] of batches.entries()) expect(bits(answers[i]!)).toEqual(bits(joined(expectedPairs(batch))));
		await engine.close();
	});
});

test("rows that came quantised give the bytes of float rows, and are refused out of their bounds", async () => {
	const engine = await openLoaded(1, true);
	const batch = makeBatch(6, 4, false);
	const quantised = Array.from({ length: 6 }, (_, r) => quantiseRow(makeRow(r)));
	const q = Int16Array.from(quantised.flatMap((row) => [...row.q]));
	const scales = joined(quantised.map((row) => row.scales));
	expect(await engine.compute({ ...batch, rows: { dtype: "q14", q, scales } })).toEqual(await engine.compute(batch));

	for (const bad of [8192, -8192, -32768]) {
		const wide = q.with(hidden + 3, bad);
		await expect(engine.compute({ ...batch, rows: { dtype: "q14", q: wide, scales } })).rejects.toMatchObject({
			code: "bounds",
		});
	}
	for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
		const wrong = scales.with(2, bad);
		await expect(engine.compute({ ...batch, rows: { dtype: "q14", q, scales: wrong } })).rejects.toMatchObject({
			code: "bounds",
		});
	}
	await engine.close();
});

test("experts are loaded, replaced and unloaded, and their bytes given back", async () => {
	const engine = await openCanonicalEngine({ memoryBytes: 2 * megabyte });
	const fileBytes = Object.values(weightsOf[0]!).reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
	await engine.load(1, 0, weightsOf[0]!);
	expect(engine.bytesHeld).toBeLessThanOrEqual(1.1 * fileBytes);
	expect([engine.has(1, 0), engine.has(0, 0), engine.has(1, 1)]).toEqual([true, false, false]);

	const one = { ...makeBatch(1, 1, false), expert: Uint16Array.of(0) };
	expect(bits(await engine.compute(one))).toEqual(bits(expertRow(weightsOf[0]!, makeRow(0))));
	await engine.load(1, 0, weightsOf[7]!);
	expect(bits(await engine.compute(one))).toEqual(bits(expertRow(weightsOf[7]!, makeRow(0))));
	expect(engine.bytesHeld).toBeLessThanOrEqual(1.1 * fileBytes);

	await engine.unload(1, 0);
	expect([engine.bytesHeld, engine.has(1, 0)]).toEqual([0, false]);
	await expect(engine.compute(one)).rejects.toMatchObject({ code: "engine_failed" });
	// Fill, empty from the middle, fill again: the arena loses nothing.
	const room = Math.floor((2 * megabyte) / (1.06 * fileBytes));
	for (let round = 0; round < 3; round++) {
		for (let e = 0; e < room; e++) await engine.load(2, e, weightsOf[e]!);
		await expect(engine.load(2, room, weightsOf[0]!)).rejects.toMatchObject({ code: "out_of_memory" });
		for (let e = 0; e < room; e += 2) await engine.unload(2, e);
		for (let e = 1; e < room; e += 2) await engine.unload(2, e);
		expect(engine.bytesHeld).toBe(0);
	}
	await engine.close();
});

test("batches that do not fit are refused", async () => {
	const engine = await openLoaded(1, true);
	const batch = makeBatch(2, 2, true);
	const wrong: Partial<ExpertBatch>[] = [
		{ rowIndex: Uint16Array.of(0, 0, 1, 2) },
		{ rowIndex: Uint16Array.of(0, 0, 1) },
		{ weight: Float32Array.of(1) },
		{ rowCount: 3 },
		{ rows: { dtype: "q14", q: new Int16Array(2 * hidden), scales: new Float32Array(1) } },
	];
	for (const change of wrong) {
		await expect(engine.compute({ ...batch, ...change })).rejects.toMatchObject({ code: "bounds" });
	}
	await expect(engine.compute({ ...batch, expert: Uint16Array.of(0, 1, 2, 16) })).rejects.toMatchObject({
		code: "engine_failed",
	});
	await expect(engine.compute({ ...batch, layer: 2 })).rejects.toMatchObject({ code: "engine_failed" });

	const plain = (outputs: number, inputs: number): WeightMatrix => ({
		type: "BF16",
		outputs,
		inputs,
		bytes: new Uint8Array(2 * outputs * inputs),
	});
	await engine.load(1, 16, { gate: plain(256, hidden), up: plain(256, hidden), down: plain(hidden, 256) });
	const quantised = { ...batch, expert: Uint16Array.of(16, 16, 16, 16) };
	const rows = { dtype: "q14", q: new Int16Array(2 * hidden), scales: new Float32Array(2) } as const;
	await expect(engine.compute({ ...quantised, rows })).rejects.toMatchObject({ code: "unsupported_type" });
	expect(await engine.compute(quantised)).toEqual(new Float32Array(2 * hidden));
	await engine.load(1, 17, { gate: plain(32, hidden), up: plain(32, hidden), down: plain(hidden, 32) });
	await expect(engine.compute({ ...batch, expert: Uint16Array.of(0, 1, 2, 17) })).rejects.toMatchObject({
		code: "unsupported_shape",
	});
	await engine.close();
});

test.each([
	["f32", false],
	["f32", true],
	["q14", true],
] as const)("any split of a batch's rows gives the same bytes: %s rows, whole rows: %s", async (dtype, weighted) => {
	const engine = await openLoaded(1, true);
	const whole = makeBatch(11, 3, weighted);
	const quantised = Array.from({ length: 11 }, (_, r) => quantiseRow(makeRow(r)));
	const q = Int16Array.from(quantised.flatMap((row) => [...row.q]));
	const rows = { dtype: "q14", q, scales: joined(quantised.map((row) => row.scales)) } as const;
	const batch = dtype === "q14" ? { ...whole, rows } : whole;
	const expected = await engine.compute(whole);
	for (const rowsMax of [1, 2, 3, 5, 10, 11, 12]) {
		const parts = splitBatch(batch, rowsMax);
		expect(parts).toHaveLength(Math.ceil(11 / rowsMax));
		expect(joined(await Promise.all(parts.map((part) => engine.compute(part))))).toEqual(expected);
	}
	await engine.close();
});

test("a batch larger than one job is computed in several", async () => {
	const engine = await openCanonicalEngine({ memoryBytes: 4 * megabyte });
	const [wide, narrow] = [32_768, 32];
	const matrix = (outputs: number, inputs: number) => makeMatrix("Q8_0", outputs, inputs, xorshift(outputs));
	const weights = { gate: matrix(narrow, wide), up: matrix(narrow, wide), down: matrix(wide, narrow) };
	await engine.load(0, 0, weights);
	const values = makePlainRows(400, wide, xorshift(5)); // 150 MiB of rows and vectors
	const rowIndex = Uint16Array.from({ length: 400 }, (_, row) => row);
	const y = await engine.compute({
		layer: 0,
		rowCount: 400,
		rows: { dtype: "f32", values },
		rowIndex,
		expert: new Uint16Array(400),
	});
	for (const row of [0, 399]) {
		const part = (all: Float32Array) => all.subarray(row * wide, (row + 1) * wide);
		expect(bits(part(y))).toEqual(bits(expertRow(weights, part(values))));
	}
	await engine.close();
});

test("a batch without pairs has an answer without values", async () => {
	const engine = await openLoaded(1, false);
	expect(await engine.compute(makeBatch(0, 4, false))).toHaveLength(0);
	await engine.close();
});

test("experts are refused with what is wrong with them", async () => {
	const engine = await openCanonicalEngine({ memoryBytes: 8 * megabyte });
	const { gate, up, down } = weightsOf[0]!;
	const bad = (matrix: WeightMatrix) => ({ ...matrix, bytes: matrix.bytes.slice().fill(0xff, 0, 2) });
	await expect(engine.load(0, 0, { gate, up: bad(up), down })).rejects.toMatchObject({ code: "bad_weights" });
	const narrow: ExpertWeights = {
		gate,
		up: { ...up, outputs: 128, bytes: up.bytes.subarray(0, up.bytes.length / 2) },
		down,
	};
	await expect(engine.load(0, 0, narrow)).rejects.toMatchObject({ code: "unsupported_shape" });
	const odd = { ...up, inputs: 200 };
	await expect(engine.load(0, 0, { gate: odd, up: odd, down: { ...down, outputs: 200 } })).rejects.toMatchObject({
		code: "unsupported_shape",
	});
	expect(engine.bytesHeld).toBe(0);
	await engine.close();
});

test("rows and intermediate vectors that are not finite are refused, and the engine goes on", async () => {
	const engine = await openLoaded(2, false);
	const batch = makeBatch(3, 4, true);
	if (batch.rows.dtype !== "f32") throw new Error("floats");
	const values = batch.rows.values.with(2 * hidden, Number.NaN);
	await expect(engine.compute({ ...batch, rows: { dtype: "f32", values } })).rejects.toMatchObject({
		code: "non_finite",
		facts: { where: "row" },
	});
	const huge = batch.rows.values.map((value) => value * 1e37);
	await expect(engine.compute({ ...batch, rows: { dtype: "f32", values: huge } })).rejects.toMatchObject({
		code: "non_finite",
		facts: { where: "result" },
	});
	const weight = batch.weight!.with(0, Number.POSITIVE_INFINITY);
	await expect(engine.compute({ ...batch, weight })).rejects.toMatchObject({
		code: "non_finite",
		facts: { where: "result" },
	});
	expect(await engine.compute(batch)).toHaveLength(3 * hidden);
	await engine.close();
	await expect(engine.compute(batch)).rejects.toMatchObject({ code: "engine_failed" });
});

test("more weights than one memory holds are spread over several, and one batch reads from all", async () => {
	const eachBytesMax = 4 * megabyte;
	const engine = await openCanonicalEngine({ memoryBytes: 4 * megabyte, threads: 2, eachBytesMax });
	for (const [e, weights] of weightsOf.entries()) await engine.load(1, e, weights);
	expect(engine.bytesHeld).toBeGreaterThan(eachBytesMax - 2 * workSpace.bytes);
	const batch = makeBatch(5, 4, true);
	const alone = await openLoaded(1, true);
	expect(await engine.compute(batch)).toEqual(await alone.compute(batch));
	await Promise.all([engine.close(), alone.close()]);
});
