import type { GeneratedText } from "./api-generate.ts";

/** Which endpoint answers: they differ in names and in where the text lies. */
export type AnswerKind = "completion" | "chat";

export interface AnswerHead {
	readonly kind: AnswerKind;
	readonly id: string;
	readonly model: string;
	/** Unix seconds. */
	readonly created: number;
}

/** The whole answer of a request that did not stream. */
export function wholeAnswer(head: AnswerHead, texts: readonly GeneratedText[]): unknown {
	return {
		...fields(head, false),
		choices: texts.map(({ text, finish, tainted }, index) => ({
			index,
			...(head.kind === "chat" ? { message: { role: "assistant", content: text } } : { text }),
			logprobs: null,
			finish_reason: finishReason(finish),
			...taint(tainted),
		})),
		usage: usageOf(texts),
	};
}

/** One piece of a streamed answer. */
export function pieceAnswer(head: AnswerHead, index: number, text: string): unknown {
	const piece = head.kind === "chat" ? { delta: { content: text } } : { text };
	return { ...fields(head, true), choices: [{ index, ...piece, logprobs: null, finish_reason: null }] };
}

/** The first event of a streamed chat. */
export function roleAnswer(head: AnswerHead): unknown {
	const choice = { index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null };
	return { ...fields(head, true), choices: [choice] };
}

/** The end of one text of a streamed answer. */
export function endAnswer(head: AnswerHead, index: number, { finish, tainted }: GeneratedText): unknown {
	const piece = head.kind === "chat" ? { delta: {} } : { text: "" };
	const choice = { index, ...piece, logprobs: null, finish_reason: finishReason(finish), ...taint(tainted) };
	return { ...fields(head, true), choices: [choice] };
}

/** The last event of a streamed answer, where usage was asked for. */
export function usageAnswer(head: AnswerHead, texts: readonly GeneratedText[]): unknown {
	return { ...fields(head, true), choices: [], usage: usageOf(texts) };
}

function fields({ kind, id, model, created }: AnswerHead, streamed: boolean) {
	const object = kind === "completion" ? "text_completion" : streamed ? "chat.completion.chunk" : "chat.completion";
	return { id, object, created, model };
}

/** Said only where it is so: clients of OpenAI do not know the field. */
function taint(tainted: boolean) {
	return tainted ? { tainted } : {};
}

function finishReason(finish: GeneratedText["finish"]): "stop" | "length" {
	return finish === "length" ? "length" : "stop";
}

function usageOf(texts: readonly GeneratedText[]) {
	const prompt = texts.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
	const completion = texts.reduce((sum, { generatedTokens }) => sum + generatedTokens, 0);
	return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}
