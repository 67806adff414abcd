import { expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { openModel } from "../model/open-model.ts";
import { openCanonicalEngine } from "./canonical/canonical-engine.ts";
import { OnDemandEngine } from "./on-demand-engine.ts";

test("experts are held at once, loaded when asked for, each once", async () => {
	const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const plain = await openCanonicalEngine({ memoryBytes: 2 ** 22 });
	const loads: number[] = [];
	const inner = await openCanonicalEngine({ memoryBytes: 2 ** 22 });
	const load = inner.load.bind(inner);
	inner.load = (layer, expert, weights) => {
		loads.push(expert);
		return load(layer, expert, weights);
	};
	const engine = new OnDemandEngine(inner);
	for (const expert of [0, 1, 2, 3]) {
		const weights = await model.weights.expert(0, expert);
		await engine.load(0, expert, weights);
		await plain.load(0, expert, weights);
	}
	expect(engine.has(0, 3)).toBe(true);
	expect(engine.bytesHeld).toBe(0);
	const { hidden } = model.shape;
	const batch = {
		layer: 0,
		rowCount: 1,
		rows: { dtype: "f32", values: Float32Array.from({ length: hidden }, (_, i) => Math.sin(i)) },
		rowIndex: Uint16Array.of(0, 0),
		expert: Uint16Array.of(2, 1),
	} as const;
	const answers = await Promise.all([engine.compute(batch), engine.compute(batch)]);
	const expected = await plain.compute(batch);
	for (const answer of answers) expect(answer).toEqual(expected);
	expect(loads).toEqual([2, 1]);
	await engine.unload(0, 3);
	await engine.unload(0, 2);
	expect([0, 1, 2, 3].map((expert) => engine.has(0, expert))).toEqual([true, true, false, false]);
	await engine.close();
	await plain.close();
	await model.weights.close();
});
