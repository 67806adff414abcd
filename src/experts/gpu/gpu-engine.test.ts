import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { packagePath } from "../../io/built.ts";
import { openModel } from "../../model/open-model.ts";
import { listAdapters, openDevice } from "./adapters.ts";
import { GpuEngine } from "./gpu-engine.ts";

const adapters = await listAdapters();
let engine: GpuEngine;
beforeAll(async () => {
	if (adapters[0]) engine = new GpuEngine(await openDevice(adapters[0].id), 2 ** 28);
});
afterAll(() => engine?.close());

const cases = packagePath("fixtures/reference/canonical-cases/");
const floats = (name: string) => new Float32Array(new Uint8Array(readFileSync(cases + name)).buffer);

it.runIf(adapters.length > 0)("computes the real experts of the canonical cases bit for bit", async () => {
	const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const index = JSON.parse(readFileSync(`${cases}index.json`, "utf8"));
	for (const { layer, expert, rows, x, y } of index.expert) {
		await engine.load(layer, expert, await model.weights.expert(layer, expert));
		const result = await engine.compute({
			layer,
			rowCount: rows,
			rows: { dtype: "f32", values: floats(x) },
			rowIndex: Uint16Array.from({ length: rows }, (_, row) => row),
			expert: new Uint16Array(rows).fill(expert),
		});
		expect(Buffer.from(result.buffer).equals(Buffer.from(floats(y).buffer))).toBe(true);
	}
});
