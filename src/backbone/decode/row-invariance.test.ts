import { expect, test } from "vitest";
import { packagePath } from "../../io/built.ts";
import { tokenizerOf } from "../../model/tokenizer.ts";
import { openDecodeRoom } from "./decode-room.ts";
import type { GenerationResult } from "./generation.ts";
import { greedy } from "./sampler.ts";

const models = ["fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf", "fixtures/reference/kvasir-tiny-35moe-UD-Q4_K_XL.gguf"];

/** Of different lengths: in every step some are in their prompt and others decode. */
const prompts = [
	"The capital of France is",
	"The",
	"The capital of Italy is Rome. The capital of Spain is Madrid. The capital of Greece is Athens. The capital of",
	"Japan is in",
	"Peru is in South America and its capital is",
	"Is",
	"The capital of Kenya",
	"Madrid, Rome, Paris, Berlin, Athens, London",
];

test.each(models)("%s: each text alone and among 7 others gives the same logit bytes", async (path) => {
	const alone = await decode(path, 1);
	for (const threads of [1, 2]) {
		const together = await decode(path, threads, true);
		for (const [i, result] of together.entries()) {
			expect(result.tokens).toEqual(alone[i]!.tokens);
			expect(Buffer.from(result.logits!.buffer).equals(Buffer.from(alone[i]!.logits!.buffer))).toBe(true);
		}
	}
});

async function decode(path: string, threads: number, together = false): Promise<GenerationResult[]> {
	const room = await openDecodeRoom({ home: "", model: packagePath(path), engine: "canonical", threads });
	try {
		const tokenizer = tokenizerOf(room.decoder.model.metadata);
		const generate = (prompt: string) =>
			room.scheduler.generate({
				prompt: tokenizer.encode(prompt, { special: true }),
				maxTokens: 12,
				sampling: greedy,
				logits: "keep",
			});
		if (together) return await Promise.all(prompts.map(generate));
		const results: GenerationResult[] = [];
		for (const prompt of prompts) results.push(await generate(prompt));
		return results;
	} finally {
		await room.close();
	}
}
