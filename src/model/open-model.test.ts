import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { sha256 } from "../io/crypto.ts";
import { dequantise } from "./dequantise.ts";
import { openModel } from "./open-model.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const reference = (name: string) => packagePath(`fixtures/reference/${name}`);

const tinyShape = {
	layers: 4,
	hidden: 256,
	vocab: 512,
	contextLength: 2048,
	fullAttention: [false, false, false, true],
	attention: { heads: 4, kvHeads: 2, headDim: 64, rotaryDims: 16, ropeTheta: 1e7 },
	deltaNet: { keyHeads: 2, valueHeads: 4, headDim: 64, convKernel: 4 },
	experts: 16,
	topK: 4,
	expertWidth: 256,
	sharedWidth: 256,
	rmsEpsilon: Math.fround(1e-6),
};

test.each([tiny, reference("kvasir-tiny-35moe-UD-Q4_K_XL.gguf"), reference("kvasir-tiny-35moe-Q4_K_M-MTP.gguf")])(
	"openModel() reads the shape of %s, without MTP blocks",
	async (path) => {
		const model = await openModel(path);
		expect(model.shape).toEqual(tinyShape);
		expect(model.modelId).toHaveLength(32);
		await model.weights.close();
	},
);

test("openModel() identifies a model by its header bytes", async () => {
	const model = await openModel(tiny);
	const dataOffset = Math.min(...[...model.gguf.tensors.values()].map((tensor) => tensor.offset));
	expect(model.modelId).toEqual(new Uint8Array(sha256(readFileSync(tiny).subarray(0, dataOffset))));
	await model.weights.close();
});

test("the weight source reads matrices, rows, floats and experts as the file holds them", async () => {
	const { weights, gguf } = await openModel(tiny);
	const file = readFileSync(tiny);
	const embedding = await weights.matrix("token_embd.weight");
	expect(embedding).toMatchObject({ type: "Q4_K", outputs: 512, inputs: 256 });
	const rows = await weights.matrixRows("token_embd.weight", 7, 2);
	expect(rows.bytes).toEqual(embedding.bytes.slice(7 * 144, 9 * 144));
	expect(await weights.floats("output_norm.weight")).toHaveLength(256);
	const down = gguf.tensors.get("blk.2.ffn_down_exps.weight")!;
	const expert = await weights.expert(2, 5);
	const slice = down.bytes / 16;
	expect(expert.down.bytes).toEqual(new Uint8Array(file.subarray(down.offset + 5 * slice, down.offset + 6 * slice)));
	expect(expert.gate).toMatchObject({ outputs: 256, inputs: 256 });
	expect(dequantise(expert.up.bytes, expert.up.type)).toHaveLength(256 * 256);
	expect((await weights.sharedExpert(0)).down).toMatchObject({ outputs: 256, inputs: 256 });
	await expect(weights.expert(4, 0)).rejects.toMatchObject({ code: "internal" });
	await expect(weights.matrix("blk.9.nothing")).rejects.toMatchObject({ code: "bad_gguf" });
	await weights.close();
});
