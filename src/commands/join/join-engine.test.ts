import { describe, expect, it } from "vitest";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { systemClock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { LateEngine } from "../../worker/late-engine.ts";
import { openJoinEngine } from "./join-engine.ts";

const choice = {
	gpu: undefined,
	threads: 1,
	memoryBytes: 2 ** 26,
	device: "A CPU (TM)",
	clock: systemClock,
	log: silentLog,
};

describe("openJoinEngine() without a model", () => {
	it.each([
		["canonical", /^canonical-1$/],
		["f32", /^f32$/],
		["onnx", /^ort:\d+\.\d+\.\d+[^:]*:cpu:a-cpu-tm$/],
	] as const)("knows the class of %s at once, and computes once the model is known", async (engine, engineClass) => {
		const late = await openJoinEngine({ ...choice, engine }, null);
		expect(late.engineClass).toMatch(engineClass);
		expect(late).toBeInstanceOf(LateEngine);
		const model = await openNamedModel(await temporaryHome(), "tiny");
		const { hidden } = model.shape;
		await (late as LateEngine).resize(hidden, (layer, expert) => model.weights.expert(layer, expert));
		await late.load(0, 3, await model.weights.expert(0, 3));
		const values = Float32Array.from({ length: hidden }, (_, i) => Math.sin(i));
		const vectors = await late.compute({
			layer: 0,
			rows: { dtype: "f32", values },
			rowCount: 1,
			rowIndex: Uint16Array.of(0),
			expert: Uint16Array.of(3),
		});
		expect(vectors).toHaveLength(hidden);
		expect(vectors.some((value) => value !== 0)).toBe(true);
		await late.close();
		await model.weights.close();
	});
});
