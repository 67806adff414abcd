import { readFileSync } from "node:fs";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { openGguf } from "./gguf.ts";
import { type Tokenizer, tokenizerOf } from "./tokenizer.ts";

const oracle = (name: string) =>
	JSON.parse(readFileSync(packagePath(`fixtures/reference/${name}`), "utf8")) as {
		tokenizer?: { text: string; tokens: number[]; tokensNoSpecial: number[] }[];
		prompts: { prompt: string; promptTokens: number[]; tokens: number[]; text: string }[];
	};
const short = oracle("oracle-Q4_K_M-dequantF32.json");
const long = oracle("oracle-long-Q4_K_M-dequantF32.json");

let metadata: ReadonlyMap<string, unknown>;
let tokenizer: Tokenizer;
beforeAll(async () => {
	const gguf = await openGguf(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	metadata = gguf.metadata;
	tokenizer = tokenizerOf(metadata);
	await gguf.close();
});

describe("tokenizerOf() equals llama.cpp", () => {
	test("on every recorded case", () => {
		const texts = JSON.parse(readFileSync(packagePath("fixtures/reference/tokenizer-cases.json"), "utf8"));
		expect(short.tokenizer!.map((entry) => entry.text)).toEqual(texts);
		for (const { text, tokens, tokensNoSpecial } of short.tokenizer!) {
			expect(tokenizer.encode(text, { special: true })).toEqual(tokens);
			expect(tokenizer.encode(text)).toEqual(tokensNoSpecial);
			expect(tokenizer.decode(tokens)).toBe(text);
		}
	});

	test.each([...short.prompts, ...long.prompts])("on the prompt %#", ({ prompt, promptTokens, tokens, text }) => {
		expect(tokenizer.encode(prompt, { special: true })).toEqual(promptTokens);
		expect(tokenizer.decode(tokens)).toBe(text);
	});
});

test("decode() gives back any text that was encoded", () => {
	fc.assert(
		fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
			expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
		}),
	);
});

test("a long text is cut where that makes no difference", () => {
	const words = [
		"it's",
		"naïve",
		"e\u0301te\u0301",
		"你好，世界。",
		"42",
		" ",
		"  ",
		"\n",
		"\r\n",
		"🦊",
		"...",
		"x1",
		"\t",
		"'re",
	];
	const texts = fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ unit: "binary", maxLength: 3 })));
	const whole = tokenizerOf(metadata, { partUnits: Number.POSITIVE_INFINITY });
	const inParts = tokenizerOf(metadata, { partUnits: 2 });
	fc.assert(
		fc.property(texts, (parts) => {
			const text = parts.join("");
			expect(inParts.encode(text)).toEqual(whole.encode(text));
		}),
		{ numRuns: 1000 },
	);
});

test("a hostile text costs no more than its limit", () => {
	for (const text of [" a", "1", "好。", "<|im_end|>", "\n\n\nx"]) {
		const tokens = tokenizer.encode(text.repeat(1_000_000), { most: 1000 });
		expect(tokens.length).toBeGreaterThan(1000);
		expect(tokens.length).toBeLessThan(1000 + 3 * 4096);
	}
	expect(() => tokenizer.encode("a".repeat(1_000_000))).toThrow(/a word of it has/);
	expect(tokenizer.encode("a".repeat(100_000)).length).toBeGreaterThan(0);
});

test("stream() never gives a broken character, and gives all of the text", () => {
	const text = "emoji 🦊🚀 你好 São\ufeffx";
	const stream = tokenizer.stream();
	const parts = tokenizer.encode(text).map((id) => stream.push(id));
	expect(parts.join("") + stream.end()).toBe(text);
	expect(parts.filter((part) => part.includes("\ufffd"))).toEqual([]);
	const cut = tokenizer.stream();
	const firstHalf = tokenizer.encode("🦊").slice(0, 2);
	expect(firstHalf.map((id) => cut.push(id))).toEqual(["", ""]);
	expect(cut.end()).toBe("\ufffd");
});

test("control tokens can be skipped, and end a generation", () => {
	const ids = tokenizer.encode("<|im_start|>hi<|im_end|>", { special: true });
	expect(ids).toEqual([510, 404, 511]);
	expect(tokenizer.decode(ids)).toBe("<|im_start|>hi<|im_end|>");
	expect(tokenizer.decode(ids, { skipSpecial: true })).toBe("hi");
	expect([...tokenizer.endOfGeneration].sort()).toEqual([509, 511]);
	expect(tokenizer.idOf("<|im_start|>")).toBe(510);
});

test("ids of a padded vocabulary have no text", () => {
	expect(tokenizer.tokenCount).toBe(512);
	expect(tokenizer.decode([512, 248_319, -1, 404])).toBe("hi");
});

describe("tokenizerOf() refuses", () => {
	test.each([
		["tokenizer.ggml.model", "llama", "unsupported_architecture"],
		["tokenizer.ggml.pre", "gpt-4o", "unsupported_architecture"],
		["tokenizer.ggml.tokens", [], "bad_gguf"],
		["tokenizer.ggml.tokens", [1, 2], "bad_gguf"],
		["tokenizer.ggml.token_type", [1], "bad_gguf"],
		["tokenizer.ggml.merges", ["a b c"], "bad_gguf"],
		["tokenizer.ggml.merges", undefined, "bad_gguf"],
	])("%s = %j", (key, value, code) => {
		expect(() => tokenizerOf(new Map([...metadata, [key, value]]))).toThrow(expect.objectContaining({ code }));
	});
});

test("qwen2 takes combining marks for punctuation, qwen35 for letters", () => {
	const qwen2 = tokenizerOf(new Map([...metadata, ["tokenizer.ggml.pre", "qwen2"]]));
	const text = "The capital e\u0301";
	expect(qwen2.decode(qwen2.encode(text))).toBe(text);
	expect(qwen2.encode("The capital")).toEqual(tokenizer.encode("The capital"));
});
