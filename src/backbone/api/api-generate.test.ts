import { expect, test } from "vitest";
import { fakeClock } from "../../../test/support/fake-clock.ts";
import { packagePath } from "../../io/built.ts";
import { openModel } from "../../model/open-model.ts";
import { tokenizerOf } from "../../model/tokenizer.ts";
import { type ApiModel, textTokens } from "./api-generate.ts";

const { metadata, weights } = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
await weights.close();
const tokenizer = tokenizerOf(metadata);
const modelOf = (contextLength: number) => ({ metadata, tokenizer, contextLength }) as ApiModel;

/** The tokens, and how often the thread was left to others. */
async function encoded(text: string, contextLength: number) {
	let pauses = 0;
	const sleep = async () => void pauses++;
	const tokens = await textTokens(modelOf(contextLength), text, { ...fakeClock(), sleep }, { special: true });
	return { tokens, pauses };
}

test("a long text is encoded with pauses, to the tokens it has in one piece; a short one without", async () => {
	const short = "<|im_start|>user\nThe capital of France is";
	expect(await encoded(short, 2048)).toEqual({ tokens: tokenizer.encode(short, { special: true }), pauses: 0 });
	const long = `${short} `.repeat(2_000);
	const { tokens, pauses } = await encoded(long, 1e6);
	expect(tokens).toEqual(tokenizer.encode(long, { special: true }));
	expect(pauses).toBeGreaterThan(tokens.length / 8192);
});

test("a text that is too long is not encoded to its end", async () => {
	const { tokens } = await encoded("word ".repeat(1_000_000), 2048);
	expect(tokens.length).toBeGreaterThan(2048);
	expect(tokens.length).toBeLessThan(2 * 8192);
});
