import type { ServerResponse } from "node:http";
import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import type { Random } from "../../io/random.ts";
import { type AnswerHead, endAnswer, pieceAnswer, roleAnswer, usageAnswer, wholeAnswer } from "./api-answers.ts";
import { type ApiModel, chatTokens, generateText, textTokens } from "./api-generate.ts";
import { failureOf, sendJson } from "./api-http.ts";
import { type ApiSampling, parseChat, parseCompletion } from "./api-requests.ts";
import { openEventStream } from "./api-stream.ts";

/** The prompts of one request, and what is asked of each. */
export interface ApiJob {
	readonly kind: AnswerHead["kind"];
	readonly prompts: readonly (readonly number[])[];
	readonly sampling: ApiSampling;
}

/** The job of a POST to /v1/completions. Throws `usage`, `model_missing`. */
export async function completionJob(json: unknown, model: ApiModel, clock: Clock): Promise<ApiJob> {
	const { prompts, ...sampling } = parseCompletion(json);
	requireServed(sampling, model);
	const tokens: (readonly number[])[] = [];
	for (const prompt of prompts) {
		const encoded = typeof prompt === "string" ? await textTokens(model, prompt, clock) : prompt;
		tokens.push(requireRoom(encoded, model.contextLength));
	}
	return { kind: "completion", prompts: tokens, sampling };
}

/** The job of a POST to /v1/chat/completions. Throws `usage`, `model_missing`. */
export async function chatJob(json: unknown, model: ApiModel, clock: Clock): Promise<ApiJob> {
	const { messages, ...sampling } = parseChat(json);
	requireServed(sampling, model);
	const tokens = await chatTokens(model, messages, clock);
	return { kind: "chat", prompts: [requireRoom(tokens, model.contextLength)], sampling };
}

export interface JobParts {
	readonly model: ApiModel;
	readonly clock: Clock;
	readonly random: Random;
	readonly closing: AbortSignal;
}

/** Generates the texts of a job, all at once, and answers with them; a client that leaves ends them. Throws what can still be an HTTP error. */
export async function answerJob({ kind, prompts, sampling }: ApiJob, response: ServerResponse, parts: JobParts) {
	const { model, clock, random, closing } = parts;
	const id = `${kind === "chat" ? "chatcmpl" : "cmpl"}-${Buffer.from(random.bytes(12)).toString("hex")}`;
	const head: AnswerHead = { kind, id, model: model.name, created: Math.floor(clock.now() / 1000) };
	const gone = new AbortController();
	const leave = () => gone.abort();
	response.once("close", leave);
	if (response.destroyed) leave(); // while its prompt was encoded
	const signal = AbortSignal.any([gone.signal, closing]);
	const first = kind === "chat" ? roleAnswer(head) : null;
	const stream = sampling.stream ? openEventStream(response, { clock, first }) : null;
	try {
		const texts = await Promise.all(
			prompts.map(async (prompt, index) => {
				const onText = (text: string) => stream?.send(pieceAnswer(head, index, text));
				const text = await generateText(model, prompt, sampling, { random, signal, onText });
				closing.throwIfAborted();
				stream?.send(endAnswer(head, index, text));
				return text;
			}),
		);
		if (stream === null) {
			sendJson(response, 200, wholeAnswer(head, texts));
			return;
		}
		if (sampling.includeUsage) stream.send(usageAnswer(head, texts));
		stream.end();
	} catch (error) {
		leave();
		const { status: _, ...failure } = failureOf(error);
		if (stream === null || !stream.fail(failure)) throw error;
	}
}

/** The prompt, before it is copied to the thread that decodes. */
function requireRoom(prompt: readonly number[], contextLength: number): readonly number[] {
	if (prompt.length <= contextLength) return prompt;
	throw new KvasirError(
		"usage",
		`Cannot generate: the prompt has more tokens than the model's context, ${contextLength}`,
		{
			facts: { contextLength },
		},
	);
}

function requireServed({ model: asked }: ApiSampling, model: ApiModel): void {
	if (asked === null || asked === model.name) return;
	throw new KvasirError("model_missing", `Cannot answer: the model "${asked}" is not served here, but ${model.name}`, {
		facts: { param: "model" },
	});
}
