import { z } from "zod";
import { KvasirError } from "../../errors.ts";
import type { ChatMessage } from "../../model/chat.ts";

// The OpenAI-style requests, as far as they are understood. What would change the answer and is not supported is refused by name;
// fields that change nothing (user, metadata, ...) are ignored.

/** Prompts of one completions request: decoded together. */
const promptsMax = 16;
const partsMax = 4096;
const stopsMax = 4;
const messagesMax = 4096;

/** An array whose length is looked at first: with each of a million wrong entries comes an issue. */
const few = <T extends z.ZodType>(entry: T, most: number, least = 0) =>
	z.array(z.unknown()).min(least).max(most).pipe(z.array(entry));

const sampling = {
	model: z.string().max(256).optional(),
	max_tokens: z.int().min(1).max(1_000_000).nullish(),
	temperature: z.number().min(0).max(100).nullish(),
	top_p: z.number().gt(0).max(1).nullish(),
	top_k: z.int().min(0).max(1_000_000).nullish(),
	seed: z.int().nullish(),
	stop: z.union([z.string().min(1).max(1024), few(z.string().min(1).max(1024), stopsMax)]).nullish(),
	stream: z.boolean().nullish(),
	stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
	n: z.literal(1).nullish(),
	best_of: z.literal(1).nullish(),
	echo: z.literal(false).nullish(),
	logprobs: z.union([z.literal(false), z.literal(0)]).nullish(),
	tools: z.array(z.unknown()).max(0).nullish(),
	functions: z.array(z.unknown()).max(0).nullish(),
	response_format: z.looseObject({ type: z.literal("text") }).nullish(),
	frequency_penalty: z.literal(0).nullish(),
	presence_penalty: z.literal(0).nullish(),
	logit_bias: z.custom<object>(isEmpty, "Only an empty one is supported").nullish(),
	suffix: z.literal("").nullish(),
};

const completion = z.looseObject({
	...sampling,
	prompt: z.union([
		z.string(),
		z.custom<readonly number[]>(isTokens, "Neither text nor tokens"),
		few(z.string(), promptsMax, 1),
	]),
});

const content = z.union([
	z.string(),
	few(z.looseObject({ type: z.literal("text"), text: z.string() }), partsMax).transform((parts) =>
		parts.map(({ text }) => text).join(""),
	),
]);
const chat = z.looseObject({
	...sampling,
	max_completion_tokens: z.int().min(1).max(1_000_000).nullish(),
	messages: few(
		z.looseObject({ role: z.enum(["system", "developer", "user", "assistant", "tool"]), content }),
		messagesMax,
		1,
	),
});

/** What a request asks of each of its prompts. */
export interface ApiSampling {
	/** Null: whichever model is served. */
	readonly model: string | null;
	/** Null: as many as the context has room for, or the endpoint's own default. */
	readonly maxTokens: number | null;
	readonly temperature: number;
	readonly topP: number;
	readonly topK: number;
	/** Null: an unpredictable one. */
	readonly seed: number | null;
	readonly stop: readonly string[];
	readonly stream: boolean;
	readonly includeUsage: boolean;
}

export interface CompletionRequest extends ApiSampling {
	/** Texts, or tokens. */
	readonly prompts: readonly (string | readonly number[])[];
}

export interface ChatRequest extends ApiSampling {
	readonly messages: readonly ChatMessage[];
}

/** Reads the body of POST /v1/completions. Throws `usage` naming the field (`facts.param`). */
export function parseCompletion(json: unknown): CompletionRequest {
	const body = parse(completion, json);
	const { prompt } = body;
	const prompts = typeof prompt === "string" || isTokens(prompt) ? [prompt] : prompt;
	return { ...samplingOf(body, body.max_tokens ?? 16), prompts };
}

/** Reads the body of POST /v1/chat/completions. Throws `usage` naming the field (`facts.param`). */
export function parseChat(json: unknown): ChatRequest {
	const body = parse(chat, json);
	const messages = body.messages.map(({ role, content: text }) => ({
		role: role === "developer" ? ("system" as const) : role,
		content: text,
	}));
	return { ...samplingOf(body, body.max_completion_tokens ?? body.max_tokens ?? null), messages };
}

function isTokens(prompt: unknown): prompt is readonly number[] {
	return (
		Array.isArray(prompt) && prompt.length > 0 && prompt.every((token) => Number.isSafeInteger(token) && token >= 0)
	);
}

function isEmpty(value: unknown): boolean {
	return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function samplingOf(body: z.infer<z.ZodObject<typeof sampling>>, maxTokens: number | null): ApiSampling {
	const { stop } = body;
	return {
		model: body.model ?? null,
		maxTokens,
		temperature: body.temperature ?? 1,
		topP: body.top_p ?? 1,
		topK: body.top_k ?? 0,
		seed: body.seed ?? null,
		stop: stop === null || stop === undefined ? [] : typeof stop === "string" ? [stop] : stop,
		stream: body.stream ?? false,
		includeUsage: body.stream_options?.include_usage ?? false,
	};
}

function parse<T extends z.ZodType>(schema: T, json: unknown): z.infer<T> {
	const parsed = schema.safeParse(json);
	if (parsed.success) return parsed.data;
	const issue = parsed.error.issues[0]!;
	const param = issue.path.join(".");
	throw new KvasirError("usage", `Cannot use the request: ${param || "body"}: ${issue.message}`, { facts: { param } });
}
