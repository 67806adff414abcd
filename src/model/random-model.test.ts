import { join } from "node:path";
import { expect, test } from "vitest";
import { oddDims, shapeOfDims, writeRandomModel } from "../../test/support/random-model.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { dequantise } from "./dequantise.ts";
import { openModel } from "./open-model.ts";
import type { TensorType } from "./weight-matrix.ts";

const types: TensorType[] = ["F32", "F16", "BF16", "Q8_0", "Q4_K", "Q5_K", "Q6_K"];

test.each(types)("a model of other dimensions in %s opens with sane weights", async (type) => {
	const dims = { ...oddDims, layers: 1, experts: 4, expertWidth: 256, sharedWidth: 256, hidden: 256 };
	const [path] = await writeRandomModel(join(await temporaryHome(), "odd.gguf"), dims, { matrices: type }, "seed");
	const model = await openModel(path!);
	expect(model.shape).toEqual(shapeOfDims(dims));
	const { gate } = await model.weights.expert(0, 3);
	expect(gate).toMatchObject({ type, outputs: 256, inputs: 256 });
	const weights = dequantise(gate.bytes, type);
	const deviation = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0) / weights.length);
	expect(deviation * 16).toBeGreaterThan(0.6);
	expect(deviation * 16).toBeLessThan(1.5);
	await model.weights.close();
});

test("split, fused and tied files hold the same experts as plain ones", async () => {
	const home = await temporaryHome();
	const dims = { ...oddDims, layers: 2, interval: 2 };
	const [plain] = await writeRandomModel(join(home, "plain.gguf"), dims, { matrices: "Q8_0", down: "Q6_K" }, "seed");
	const tied = { matrices: "Q8_0", down: "Q6_K", output: "tied", fused: true } as const;
	const parts = await writeRandomModel(join(home, "fused.gguf"), dims, tied, "seed", { splits: [0, 9, 1] });
	const a = await openModel(plain!);
	const b = await openModel(parts[1]!);
	expect(b.shape).toEqual(a.shape);
	expect(a.weights.has("output.weight")).toBe(true);
	expect(b.weights.has("output.weight")).toBe(false);
	expect(b.modelId).not.toEqual(a.modelId);
	const fromPlain = await a.weights.expert(1, 7);
	const fromFused = await b.weights.expert(1, 7);
	expect(Buffer.compare(fromFused.down.bytes, fromPlain.down.bytes)).toBe(0);
	expect(fromFused.gate).toMatchObject({ outputs: dims.expertWidth, inputs: dims.hidden });
	// The halves of an expert in the fused tensor: first all gate rows, then all up rows.
	const fused = b.gguf.tensors.get("blk.1.ffn_gate_up_exps.weight")!;
	const half = fromFused.gate.bytes.length;
	expect(Buffer.compare(await b.gguf.read(fused, 14 * half, half), fromFused.gate.bytes)).toBe(0);
	expect(Buffer.compare(await b.gguf.read(fused, 15 * half, half), fromFused.up.bytes)).toBe(0);
	await a.weights.close();
	await b.weights.close();
});
