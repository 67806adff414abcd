import { expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { geometryNamed } from "./geometries.ts";
import { inspectModel } from "./inspect.ts";
import { openModel } from "./open-model.ts";
import { openSynthetic, tinyModelPath } from "./synthetic.ts";

test("inspectModel() describes a file", async () => {
	const model = await openModel(tinyModelPath);
	const report = inspectModel(model);
	expect(report).toMatchObject({ weights: "file", geometry: null, mtpBlocks: 0, shape: model.shape });
	expect(report.files).toEqual([{ path: tinyModelPath, bytes: expect.any(Number) }]);
	expect(report.types.map(({ type }) => type)).toEqual(["Q4_K", "Q6_K", "F32"]);
	expect(report.types.reduce((sum, { tensors }) => sum + tensors, 0)).toBe(report.tensors);
	expect(report.bytes).toBeLessThan(report.files[0]!.bytes);
	const expert = await model.weights.expert(1, 0);
	const bytes = [expert.gate, expert.up, expert.down].reduce((sum, matrix) => sum + matrix.bytes.length, 0);
	expect(report.bytesPerExpert[1]).toBe(bytes);
	expect(report.metadata["tokenizer.ggml.tokens"]).toBe("512 values");
	expect(JSON.parse(JSON.stringify(report))).toEqual(report);
	await model.weights.close();
});

test("inspectModel() counts MTP blocks", async () => {
	const model = await openModel(packagePath("fixtures/reference/kvasir-tiny-35moe-Q4_K_M-MTP.gguf"));
	expect(inspectModel(model)).toMatchObject({ mtpBlocks: 1, shape: { layers: 4 } });
	await model.weights.close();
});

test("inspectModel() describes the synthetic model", async () => {
	const report = inspectModel(await openSynthetic(geometryNamed("122b")!));
	expect(report).toMatchObject({ weights: "synthetic", geometry: "122b", files: [] });
	expect(report.bytesPerExpert).toEqual([(3 * 3072 * 1024 * 144) / 256]);
	expect(report.expertBytes).toBe(256 * report.bytesPerExpert[0]!);
});
