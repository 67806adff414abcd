import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { plainForward } from "../../../test/support/plain-forward.ts";
import { oddDims, type RandomDims, type RandomTypes, writeRandomModel } from "../../../test/support/random-model.ts";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { openF32Engine } from "../../experts/f32/f32-engine.ts";
import { openF32Matrices } from "../../experts/f32/f32-matrices.ts";
import { packagePath } from "../../io/built.ts";
import { systemClock } from "../../io/clock.ts";
import type { WeightSource } from "../../model/model.ts";
import { openModel } from "../../model/open-model.ts";
import type { DecodeSettings } from "./decode-messages.ts";
import { type DecodeRoom, openDecodeRoom } from "./decode-room.ts";
import type { Decoder } from "./decoder.ts";
import { openDecoder } from "./open-decoder.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const reference = (name: string) => packagePath(`fixtures/reference/${name}`);

async function open(model: string, more: Partial<DecodeSettings> = {}): Promise<DecodeRoom> {
	const room = await openDecodeRoom({ home: "", model, engine: "f32", ...more });
	onTestFinished(() => room.close());
	return room;
}

/** All logits of a text, its tokens going in as chunks of the given lengths. */
async function logitsOf(decoder: Decoder, tokens: readonly number[], chunkLength: number): Promise<Float32Array> {
	const sequence = decoder.newSequence();
	const { vocab } = decoder.model.shape;
	const all = new Float32Array(tokens.length * vocab);
	for (let first = 0; first < tokens.length; first += chunkLength) {
		const chunk = tokens.slice(first, first + chunkLength);
		const [logits] = await decoder.forward([{ sequence, tokens: chunk, wantLogits: "all", phase: "prefill" }]);
		all.set(logits!, first * vocab);
	}
	return all;
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
	return Buffer.from(buffer, byteOffset, byteLength);
}

function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
	expect(a.length).toBe(b.length);
	return Array.from(a, (value, i) => Math.abs(value - b[i]!)).reduce((most, value) => Math.max(most, value), 0);
}

const text = async () =>
	JSON.parse(await readFile(reference("trace-Q4_K_M/index.json"), "utf8")) as { tokens: number[] };

test("an MTP block is skipped: the same logits, byte for byte", async () => {
	const { tokens } = await text();
	const plain = await open(tiny);
	const withBlock = await open(reference("kvasir-tiny-35moe-Q4_K_M-MTP.gguf"));
	expect(withBlock.facts.shape.layers).toBe(plain.facts.shape.layers);
	const a = await logitsOf(plain.decoder, tokens, 64);
	expect(bytesOf(await logitsOf(withBlock.decoder, tokens, 64)).equals(bytesOf(a))).toBe(true);
});

test("a prompt gives the same logits in chunks of any length, byte for byte", async () => {
	const { decoder } = await open(tiny, { engine: "canonical" });
	const long = JSON.parse(await readFile(reference("oracle-long-Q4_K_M-dequantF32.json"), "utf8"));
	const tokens: number[] = long.prompts[1].promptTokens;
	const whole = bytesOf(await logitsOf(decoder, tokens, tokens.length));
	for (const length of [1, 3, 64, 100]) {
		expect(bytesOf(await logitsOf(decoder, tokens, length)).equals(whole)).toBe(true);
	}
});

test.each(["f32", "canonical"] as const)(
	"a text decoded together with others has the same logits as alone, byte for byte: %s",
	async (engine) => {
		const { decoder } = await open(tiny, { engine });
		const { tokens } = await text();
		const alone = await logitsOf(decoder, tokens, 1);
		const [mine, first, second] = [decoder.newSequence(), decoder.newSequence(), decoder.newSequence()];
		for (const [position, token] of tokens.entries()) {
			const [, logits] = await decoder.forward([
				{ sequence: first, tokens: tokens.slice(0, 1 + (position % 3)), wantLogits: "none", phase: "prefill" },
				{ sequence: mine, tokens: [token], wantLogits: "last", phase: "decode" },
				{ sequence: second, tokens: [tokens[tokens.length - 1 - position]!], wantLogits: "all", phase: "decode" },
			]);
			const expected = alone.subarray(position * 512, (position + 1) * 512);
			expect(bytesOf(logits!).equals(bytesOf(expected))).toBe(true);
		}
	},
);

const models: [string, Partial<RandomDims>, RandomTypes][] = [
	["odd dimensions, delta net ratio 3, three KV heads", {}, { matrices: "Q8_0", down: "Q6_K" }],
	[
		"ratio 1, every layer attention but one, one expert a row",
		{ keyHeads: 2, valueHeads: 2, interval: 2, topK: 1, layers: 4 },
		{ matrices: "Q4_K" },
	],
	[
		"ratio 4, one KV head, all experts chosen, tied head",
		{ keyHeads: 1, valueHeads: 4, kvHeads: 1, topK: 6 },
		{ matrices: "Q8_0", output: "tied" },
	],
	["no attention at all, fused gate and up", { interval: 9, convKernel: 4 }, { matrices: "Q8_0", fused: true }],
	[
		"widths that are no multiple of anything",
		{
			hidden: 84,
			heads: 3,
			kvHeads: 1,
			headDim: 20,
			rotaryDims: 10,
			keyHeads: 3,
			valueHeads: 6,
			stateDim: 12,
			convKernel: 2,
			experts: 7,
			topK: 5,
			expertWidth: 36,
			sharedWidth: 52,
		},
		{ matrices: "F32" },
	],
];

test.each(models)("equals the plain forward pass: %s", async (name, dims, types) => {
	const path = join(await temporaryHome(), "random.gguf");
	await writeRandomModel(path, { ...oddDims, hidden: 256, experts: 6, sharedWidth: 256, ...dims }, types, name);
	const { decoder } = await open(path);
	const tokens = [3, 141, 0, 511, 59];
	const expected = (await plainForward(decoder.model, tokens)).flat();
	const scale = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
	for (const length of [1, 3, tokens.length]) {
		expect(largestDifference(await logitsOf(decoder, tokens, length), expected) / scale).toBeLessThan(2e-5);
	}
});

test("experts beyond the memory budget come and go, and the logits stay the same", async () => {
	const { tokens } = await text();
	const roomy = await open(tiny);
	const expected = await logitsOf(roomy.decoder, tokens, 8);
	const tight = await open(tiny, { memoryBytes: 3 * 3 * 256 * 256 * 4 }); // three experts
	expect(bytesOf(await logitsOf(tight.decoder, tokens, 8)).equals(bytesOf(expected))).toBe(true);
});

test("refuses tokens that the model does not have and texts beyond its context", async () => {
	const { decoder } = await open(tiny);
	const forward = (tokens: number[]) =>
		decoder.forward([{ sequence: decoder.newSequence(), tokens, wantLogits: "last", phase: "decode" }]);
	for (const tokens of [[512], [-1], [1.5], [], new Array(2049).fill(1)]) {
		await expect(forward(tokens)).rejects.toMatchObject({ code: "bounds" });
	}
});

test("a value that is not finite ends the step, naming the place", async () => {
	const model = await openModel(tiny);
	const experts = await openF32Engine({ hidden: model.shape.hidden });
	const spoiled = async (name: string): Promise<Decoder> => {
		const weights: WeightSource = {
			...model.weights,
			floats: async (tensor) => {
				const values = await model.weights.floats(tensor);
				return tensor === name ? values.fill(Number.POSITIVE_INFINITY) : values;
			},
		};
		const decoder = await openDecoder({
			model: { ...model, weights },
			experts,
			matrices: await openF32Matrices(),
			clock: systemClock,
		});
		onTestFinished(() => decoder.close());
		return decoder;
	};
	for (const [tensor, place] of [
		["blk.1.attn_norm.weight", "layer 1: a projection into its mixer"],
		["blk.2.post_attention_norm.weight", "layer 2: a logit of the router"],
		["blk.3.attn_k_norm.weight", "layer 3: the output of its mixer"],
		["blk.0.ssm_norm.weight", "layer 0: the output of its mixer"],
		["output_norm.weight", "decode: a logit"],
	] as const) {
		const decoder = await spoiled(tensor);
		const chunk = { sequence: decoder.newSequence(), tokens: [1, 2], wantLogits: "last", phase: "prefill" } as const;
		await expect(decoder.forward([chunk])).rejects.toMatchObject({
			code: "non_finite",
			message: expect.stringContaining(place),
		});
	}
	await experts.close();
	await model.weights.close();
});
