import { expect, onTestFinished, test } from "vitest";
import { plainExpert, swiglu } from "../../../test/support/plain-forward.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { packagePath } from "../../io/built.ts";
import { openModel } from "../../model/open-model.ts";
import type { WeightMatrix } from "../../model/weight-matrix.ts";
import type { ExpertEngine } from "../engine.ts";
import { combine } from "../reference.ts";
import { openF32Engine } from "./f32-engine.ts";

const random = seededRandom(35);
const hidden = 256;
const randomRows = (count: number) => Float32Array.from({ length: count * hidden }, () => random.uniform() * 2 - 1);

async function tinyEngine(
	memoryBytes?: number,
): Promise<{ engine: ExpertEngine; load: (expert: number) => Promise<void> }> {
	const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const engine = await openF32Engine(memoryBytes === undefined ? { hidden } : { hidden, memoryBytes });
	onTestFinished(async () => {
		await engine.close();
		await model.weights.close();
	});
	return { engine, load: async (expert) => engine.load(1, expert, await model.weights.expert(1, expert)) };
}

const batchOf = (rows: Float32Array, pairs: [row: number, expert: number][]) => ({
	layer: 1,
	rowCount: rows.length / hidden,
	rows: { dtype: "f32", values: rows } as const,
	rowIndex: Uint16Array.from(pairs, ([row]) => row),
	expert: Uint16Array.from(pairs, ([, expert]) => expert),
});

test("an expert's vectors are those of the plain loops", async () => {
	const { engine, load } = await tinyEngine();
	await load(3);
	const rows = randomRows(2);
	const vectors = await engine.compute(
		batchOf(rows, [
			[0, 3],
			[1, 3],
		]),
	);
	const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const weights = plainExpert(await model.weights.expert(1, 3));
	await model.weights.close();
	for (const row of [0, 1]) {
		const expected = swiglu(weights, rows.subarray(row * hidden, (row + 1) * hidden));
		for (const [i, value] of expected.entries()) expect(vectors[row * hidden + i]).toBeCloseTo(value, 4);
	}
});

test("a pair's vector does not depend on the rest of the batch, byte for byte", async () => {
	const { engine, load } = await tinyEngine();
	const experts = [0, 5, 9];
	for (const expert of experts) await load(expert);
	const rows = randomRows(9);
	const pairs = Array.from({ length: 9 }, (_, row) => experts.map((expert): [number, number] => [row, expert])).flat();
	const together = await engine.compute(batchOf(rows, pairs));
	for (const [pair, [row, expert]] of pairs.entries()) {
		const alone = await engine.compute(batchOf(rows.slice(row * hidden, (row + 1) * hidden), [[0, expert]]));
		expect(alone).toEqual(together.subarray(pair * hidden, (pair + 1) * hidden));
	}
});

test("with weights, rows are summed in rank order", async () => {
	const { engine, load } = await tinyEngine();
	for (const expert of [2, 1]) await load(expert);
	const batch = batchOf(randomRows(2), [
		[0, 2],
		[0, 1],
		[1, 1],
		[1, 2],
	]);
	const weight = Float32Array.of(0.7, 0.3, 0.6, 0.4);
	const vectors = await engine.compute(batch);
	const sums = await engine.compute({ ...batch, weight });
	const vector = (pair: number) => vectors.subarray(pair * hidden, (pair + 1) * hidden);
	expect(sums.subarray(0, hidden)).toEqual(combine([vector(0), vector(1)], weight.subarray(0, 2)));
	expect(sums.subarray(hidden)).toEqual(combine([vector(2), vector(3)], weight.subarray(2)));
});

test("q14 rows are taken as q times the block's scale", async () => {
	const { engine, load } = await tinyEngine();
	await load(4);
	const q = Int16Array.from({ length: hidden }, () => Math.floor(random.uniform() * 16383) - 8191);
	const scales = Float32Array.of(1 / 8191);
	const pair = { rowIndex: Uint16Array.of(0), expert: Uint16Array.of(4), layer: 1, rowCount: 1 };
	const coded = await engine.compute({ ...pair, rows: { dtype: "q14", q, scales } });
	const values = Float32Array.from(q, (value) => value * scales[0]!);
	expect(coded).toEqual(await engine.compute({ ...pair, rows: { dtype: "f32", values } }));
});

test("counts what it holds, replaces, unloads, and refuses more than its memory", async () => {
	const bytes = 3 * 256 * 256 * 4;
	const { engine, load } = await tinyEngine(2 * bytes);
	await load(0);
	await load(0);
	await load(1);
	expect(engine.bytesHeld).toBe(2 * bytes);
	await expect(load(2)).rejects.toMatchObject({ code: "out_of_memory" });
	await engine.unload(1, 0);
	expect([engine.has(1, 0), engine.has(1, 1), engine.bytesHeld]).toEqual([false, true, bytes]);
	await load(2);
	await expect(engine.compute(batchOf(randomRows(1), [[0, 0]]))).rejects.toMatchObject({ code: "engine_failed" });
});

test("refuses rows and results that are not finite", async () => {
	const { engine, load } = await tinyEngine();
	await load(0);
	const rows = randomRows(1);
	rows[17] = Number.NaN;
	const compute = () => engine.compute(batchOf(rows, [[0, 0]]));
	await expect(compute()).rejects.toMatchObject({ code: "non_finite", facts: { where: "row" } });
	rows.fill(3e38);
	await expect(compute()).rejects.toMatchObject({ code: "non_finite", facts: { where: "result" } });
});

test("refuses weights that are not finite or do not fit together", async () => {
	const { engine } = await tinyEngine();
	const matrix = (outputs: number, inputs: number, value = 0): WeightMatrix => ({
		type: "F32",
		outputs,
		inputs,
		bytes: new Uint8Array(new Float32Array(outputs * inputs).fill(value).buffer),
	});
	const [gate, up] = [matrix(8, hidden), matrix(8, hidden)];
	const load = (down: WeightMatrix) => engine.load(0, 0, { gate, up, down });
	await expect(load(matrix(hidden, 9))).rejects.toMatchObject({ code: "unsupported_shape" });
	await expect(load(matrix(hidden, 8, Number.POSITIVE_INFINITY))).rejects.toMatchObject({ code: "bad_weights" });
	await expect(load({ ...matrix(hidden, 8), outputs: hidden, bytes: new Uint8Array(4) })).rejects.toMatchObject({
		code: "bad_weights",
	});
	expect(engine.bytesHeld).toBe(0);
});
