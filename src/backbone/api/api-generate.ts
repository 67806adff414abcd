import type { Clock } from "../../io/clock.ts";
import type { Random } from "../../io/random.ts";
import { type ChatMessage, renderChat } from "../../model/chat.ts";
import type { Metadata } from "../../model/metadata.ts";
import type { Tokenizer } from "../../model/tokenizer.ts";
import type { GenerationRequest, GenerationResult } from "../decode/generation.ts";
import type { GenerationHooks } from "../decode/scheduler.ts";
import type { ApiSampling } from "./api-requests.ts";
import { StopFilter } from "./stop-filter.ts";

/** The model that the API serves, and what generates with it. */
export interface ApiModel {
	readonly name: string;
	readonly contextLength: number;
	readonly metadata: Metadata;
	readonly tokenizer: Tokenizer;
	generate(request: GenerationRequest, hooks: GenerationHooks): Promise<GenerationResult>;
	/** True for a sequence that used answers of a worker that failed an audit since. */
	isTainted?(sequence: number): boolean;
}

/** How a text ended, and what it cost. */
export interface GeneratedText {
	readonly text: string;
	readonly finish: "stop" | "length" | "aborted";
	readonly promptTokens: number;
	readonly generatedTokens: number;
	/** A worker whose answers it used failed an audit: it may not be what the model says. */
	readonly tainted: boolean;
}

/** Tokens of a text after which everything else on this thread has a turn: some 20 ms. */
const tokensAtOnce = 2048;

/** A text's tokens; not all of them where they are more than the model's context. Throws `bounds`. */
export async function textTokens(
	{ tokenizer, contextLength }: ApiModel,
	text: string,
	clock: Clock,
	{ special = false } = {},
): Promise<number[]> {
	const tokens: number[] = [];
	let pausedAt = 0;
	for (const part of tokenizer.encodeInParts(text, { special, most: contextLength })) {
		for (const token of part) tokens.push(token);
		if (tokens.length - pausedAt < tokensAtOnce) continue;
		pausedAt = tokens.length;
		await clock.sleep(0); // the sockets of workers are this thread's too
	}
	return tokens;
}

/** A conversation's prompt, as tokens, by the model's own template; not all of them where they are more than its context. Throws `usage`, `bounds`. */
export function chatTokens(model: ApiModel, messages: readonly ChatMessage[], clock: Clock): Promise<number[]> {
	const text = renderChat(model, messages, { addGenerationPrompt: true });
	return textTokens(model, text, clock, { special: true });
}

/**
 * Generates the text that follows `prompt`, up to a stop sequence. Throws what generating throws.
 *
 * @param onText called with each piece of text as it becomes final
 */
export async function generateText(
	model: ApiModel,
	prompt: readonly number[],
	sampling: ApiSampling,
	{ random, signal, onText }: { random: Random; signal: AbortSignal; onText: (text: string) => void },
): Promise<GeneratedText> {
	const { tokenizer } = model;
	const filter = new StopFilter(sampling.stop);
	const stream = tokenizer.stream({ skipSpecial: true });
	const enough = new AbortController();
	let text = "";
	function emit(piece: string): void {
		const cleared = filter.push(piece);
		if (filter.stopped) enough.abort();
		give(cleared);
	}
	function give(piece: string): void {
		if (piece === "") return;
		text += piece;
		onText(piece);
	}
	const result = await model.generate(
		{
			prompt,
			maxTokens: sampling.maxTokens ?? Math.max(1, model.contextLength - prompt.length),
			sampling: {
				temperature: sampling.temperature,
				topP: sampling.topP,
				topK: sampling.topK,
				seed: sampling.seed ?? Math.floor(random.uniform() * Number.MAX_SAFE_INTEGER),
			},
			stopTokens: [...tokenizer.endOfGeneration],
		},
		{ onToken: (token) => emit(stream.push(token)), signal: AbortSignal.any([signal, enough.signal]) },
	);
	if (!filter.stopped) emit(stream.end());
	give(filter.end());
	return {
		text,
		finish: filter.stopped ? "stop" : result.finish,
		promptTokens: prompt.length,
		generatedTokens: result.tokens.length,
		tainted: result.sequence !== null && (model.isTainted?.(result.sequence) ?? false),
	};
}
