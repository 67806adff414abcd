import { Template } from "@huggingface/jinja";
import { KvasirError } from "../errors.ts";
import { type Metadata, textOf } from "./metadata.ts";

/** One message of a conversation. */
export interface ChatMessage {
	readonly role: "system" | "user" | "assistant" | "tool";
	readonly content: string;
}

/**
 * The prompt a conversation becomes by the model's own chat template; encode it with `special`.
 * Throws `unsupported_architecture` without a template, `usage` when the template refuses the messages.
 *
 * @param options.addGenerationPrompt end with the opening of the assistant's answer
 * @param options.variables further values the template may ask for, such as `enable_thinking`
 */
export function renderChat(
	model: { readonly metadata: Metadata },
	messages: readonly ChatMessage[],
	options: { addGenerationPrompt: boolean; variables?: Readonly<Record<string, unknown>> },
): string {
	const source = textOf(model.metadata, "tokenizer.chat_template");
	if (source === undefined) {
		throw new KvasirError("unsupported_architecture", "Cannot render the conversation: the model has no chat template");
	}
	const values = { ...options.variables, ...specialTokens(model.metadata), messages };
	try {
		return new Template(source).render({ ...values, add_generation_prompt: options.addGenerationPrompt });
	} catch (cause) {
		const reason = cause instanceof Error ? cause.message : String(cause);
		throw new KvasirError("usage", `Cannot render the conversation: ${reason}`, {
			cause,
			hint: "the model's chat template does not accept these messages: check their roles and order",
		});
	}
}

/** `bos_token`, `eos_token` and `pad_token` by their texts, as templates expect them. */
function specialTokens(metadata: Metadata): Record<string, string> {
	const tokens = metadata.get("tokenizer.ggml.tokens");
	if (!Array.isArray(tokens)) return {};
	const names = { bos_token: "bos", eos_token: "eos", pad_token: "padding" };
	const found = Object.entries(names).map(([name, key]) => [
		name,
		String(tokens[Number(metadata.get(`tokenizer.ggml.${key}_token_id`))] ?? ""),
	]);
	return Object.fromEntries(found);
}
