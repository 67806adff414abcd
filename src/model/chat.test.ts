import { expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { renderChat } from "./chat.ts";
import { openGguf } from "./gguf.ts";

test("renderChat() makes the prompt the model was trained on", async () => {
	const gguf = await openGguf(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const messages = [{ role: "user", content: "What is the capital of Peru?" }] as const;
	expect(renderChat(gguf, messages, { addGenerationPrompt: true })).toBe(
		"<|im_start|>user\nWhat is the capital of Peru?<|im_end|>\n<|im_start|>assistant\n",
	);
	expect(renderChat(gguf, messages, { addGenerationPrompt: false })).not.toContain("assistant");
	await gguf.close();
});

test("renderChat() knows templates that use special tokens and refuse messages", () => {
	const template =
		"{%- if messages[0].role == 'tool' %}{{ raise_exception('no tools first') }}{% endif %}{{ messages[0].content ~ eos_token }}{{ enable_thinking }}";
	const metadata = new Map<string, unknown>([
		["tokenizer.chat_template", template],
		["tokenizer.ggml.tokens", ["a", "<end>"]],
		["tokenizer.ggml.eos_token_id", 1],
	]);
	const variables = { enable_thinking: false };
	expect(renderChat({ metadata }, [{ role: "user", content: "x" }], { addGenerationPrompt: true, variables })).toBe(
		"x<end>false",
	);
	expect(() => renderChat({ metadata }, [{ role: "tool", content: "x" }], { addGenerationPrompt: true })).toThrow(
		expect.objectContaining({ code: "usage", message: expect.stringContaining("no tools first") }),
	);
	expect(() => renderChat({ metadata: new Map() }, [], { addGenerationPrompt: true })).toThrow(
		expect.objectContaining({ code: "unsupported_architecture" }),
	);
});
