import { expect, onTestFinished, test } from "vitest";
import type { ExpertEngine } from "../../experts/engine.ts";
import { openF32Engine } from "../../experts/f32/f32-engine.ts";
import { packagePath } from "../../io/built.ts";
import { openModel } from "../../model/open-model.ts";
import { LocalExperts } from "./local-experts.ts";

const hidden = 256;
const expertBytes = 3 * 256 * 256 * 4;
const rows = Float32Array.from({ length: 2 * hidden }, (_, i) => Math.sin(i));

/** The tiny model over an engine that holds `engineExperts`, with a budget of `budgetExperts`. */
async function open(budgetExperts?: number, engineExperts = 100) {
	const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const engine = await openF32Engine({ hidden, memoryBytes: engineExperts * expertBytes });
	onTestFinished(async () => {
		await engine.close();
		await model.weights.close();
	});
	const local = new LocalExperts(model, engine, budgetExperts === undefined ? undefined : budgetExperts * expertBytes);
	return { local, engine, shared: model.shape.experts };
}

const batchOf = (layer: number, experts: readonly number[]) => ({
	layer,
	rowCount: 2,
	rows: { dtype: "f32", values: rows } as const,
	rowIndex: Uint16Array.from(experts, (_, pair) => pair % 2),
	expert: Uint16Array.from(experts),
});

const heldIn = (engine: ExpertEngine, layer: number) =>
	Array.from({ length: 17 }, (_, expert) => expert).filter((expert) => engine.has(layer, expert));

test("experts are loaded when they are first used; the shared one is numbered after the routed ones", async () => {
	const { local, engine, shared } = await open();
	expect(engine.bytesHeld).toBe(0);
	await local.compute(batchOf(1, [3, shared]));
	expect(heldIn(engine, 1)).toEqual([3, shared]);
	expect(heldIn(engine, 0)).toEqual([]);
});

test("the longest unused expert goes first", async () => {
	const { local, engine } = await open(3);
	await local.compute(batchOf(0, [0, 1]));
	await local.compute(batchOf(0, [2]));
	await local.compute(batchOf(0, [0]));
	await local.compute(batchOf(2, [9]));
	expect(heldIn(engine, 0)).toEqual([0, 2]);
	expect(heldIn(engine, 2)).toEqual([9]);
});

test.each([1, 2, 3])(
	"a batch of more experts than fit (%i) is computed in parts, to the same bytes",
	async (budget) => {
		const experts = [4, 0, 7, 4, 1, 16, 7];
		const expected = await (await open()).local.compute(batchOf(0, experts));
		const { local, engine } = await open(budget, budget);
		expect(await local.compute(batchOf(0, experts))).toEqual(expected);
		expect(engine.bytesHeld).toBeLessThanOrEqual(budget * expertBytes);
		expect(await local.compute(batchOf(0, experts))).toEqual(expected);
	},
);

test("an engine with less room than the budget makes experts go, not the decode fail", async () => {
	const { local, engine } = await open(10, 2);
	for (const expert of [0, 1, 2, 3]) await local.compute(batchOf(0, [expert]));
	expect(heldIn(engine, 0)).toEqual([2, 3]);
	await expect(local.compute(batchOf(0, [5, 6, 7]))).rejects.toMatchObject({ code: "out_of_memory" });
	await local.compute(batchOf(0, [5]));
});

test("calls are answered one after another, and a failed one harms no other", async () => {
	const { local } = await open(1, 1);
	const failing = local.compute({ ...batchOf(0, [1]), rows: { dtype: "f32", values: rows.map(() => Number.NaN) } });
	const fine = [local.compute(batchOf(0, [2])), local.compute(batchOf(3, [2]))];
	await expect(failing).rejects.toMatchObject({ code: "non_finite" });
	for (const vectors of await Promise.all(fine)) expect(vectors.length).toBe(hidden);
});
