import { createHash, type Hash } from "node:crypto";
import { KvasirError } from "../../errors.ts";
import type { ModelShape } from "../../model/shape.ts";
import { checkSampling, type Sampling, sample } from "./sampler.ts";
import type { Sequence } from "./sequence.ts";
import type { Chunk } from "./step.ts";

/** What to generate. */
export interface GenerationRequest {
	/** The prompt's tokens, at least one. */
	readonly prompt: readonly number[];
	/** Most tokens to generate. */
	readonly maxTokens: number;
	readonly sampling: Sampling;
	/** Tokens that end the text; they are not part of the result. */
	readonly stopTokens?: readonly number[];
	/** Teacher forcing: take these tokens, whatever the logits say; their number bounds the result. */
	readonly forced?: readonly number[];
	/** Logits of every position that went in: not kept, digested (SHA-256), or kept and digested. @default "none" */
	readonly logits?: "none" | "digest" | "keep";
}

export interface GenerationResult {
	/** The sequence's id, by which audits name those that may carry a wrong answer; null: it never began. */
	readonly sequence: number | null;
	readonly tokens: readonly number[];
	/** A stop token came; `maxTokens` or the context ran out; or the caller aborted. */
	readonly finish: "stop" | "length" | "aborted";
	/** Rows in `logits` and in the digest: prompt positions, then those of the tokens that were fed. */
	readonly positions: number;
	/** (positions, vocab) when they were to be kept. */
	readonly logits: Float32Array | null;
	/** SHA-256 of the logits of all positions, little-endian, in order; null when not asked for. */
	readonly logitsSha256: Uint8Array | null;
}

/** Checks a request that came from outside. Throws `usage`, or `bounds` for a token that is none. */
export function checkRequest(request: GenerationRequest, { contextLength, vocab }: ModelShape): void {
	checkSampling(request.sampling);
	if (request.prompt.length < 1)
		throw new KvasirError("usage", "Cannot generate: the prompt has no tokens", {
			hint: "Say at least one character",
		});
	if (!Number.isInteger(request.maxTokens) || request.maxTokens < 1) {
		throw new KvasirError("usage", `Cannot generate: ${request.maxTokens} is no number of tokens`);
	}
	if (request.prompt.length > contextLength) {
		const state = `the prompt has ${request.prompt.length} tokens, the model's context ${contextLength}`;
		throw new KvasirError("usage", `Cannot generate: ${state}`, { hint: "Shorten the prompt" });
	}
	const alien = [...request.prompt, ...(request.forced ?? [])].find((token) => !(vocab > token && token >= 0));
	if (alien !== undefined) {
		throw new KvasirError("bounds", `Cannot generate: token ${alien} is not among the model's ${vocab}`);
	}
}

/** One text on its way: hands out its next chunk, takes the chunk's logits, until it is finished. */
export class Generation {
	readonly #request: GenerationRequest;
	readonly #sequence: Sequence;
	readonly #shape: ModelShape;
	readonly #onToken: (token: number, index: number) => void;
	readonly #tokens: number[] = [];
	readonly #hash: Hash | null;
	readonly #kept: Float32Array[] | null;
	#positions = 0;
	/** Prompt tokens that went in. */
	#prefilled = 0;
	#finish: GenerationResult["finish"] | null = null;

	constructor(
		request: GenerationRequest,
		sequence: Sequence,
		shape: ModelShape,
		onToken: (token: number, index: number) => void,
	) {
		this.#request = request;
		this.#sequence = sequence;
		this.#shape = shape;
		this.#onToken = onToken;
		const { logits = "none" } = request;
		this.#hash = logits === "none" ? null : createHash("sha256");
		this.#kept = logits === "keep" ? [] : null;
	}

	get finished(): boolean {
		return this.#finish !== null;
	}

	/** The next rows: a part of the prompt, or the last token. */
	nextChunk(prefillChunk: number): Chunk {
		const { prompt, logits = "none" } = this.#request;
		if (this.#prefilled === prompt.length) {
			return { sequence: this.#sequence, tokens: [this.#tokens.at(-1)!], wantLogits: "last", phase: "decode" };
		}
		const tokens = prompt.slice(this.#prefilled, this.#prefilled + prefillChunk);
		this.#prefilled += tokens.length;
		const last = this.#prefilled === prompt.length;
		const wantLogits = logits !== "none" ? "all" : last ? "last" : "none";
		return { sequence: this.#sequence, tokens, wantLogits, phase: "prefill" };
	}

	/** Takes the logits of the last chunk and, once the whole prompt is in, the next token. */
	take(logits: Float32Array): void {
		this.#record(logits);
		if (this.#prefilled < this.#request.prompt.length) return;
		const index = this.#tokens.length;
		const last = logits.subarray(logits.length - this.#shape.vocab);
		const token = this.#request.forced?.[index] ?? sample(last, this.#request.sampling, index);
		if (this.#request.stopTokens?.includes(token)) {
			this.#finish = "stop";
			return;
		}
		this.#tokens.push(token);
		this.#onToken(token, index);
		if (this.#tokens.length >= this.#tokensMost) this.#finish ??= "length";
	}

	abort(): void {
		this.#finish ??= "aborted";
	}

	/** Gives back what its sequence remembers. */
	release(): void {
		this.#sequence.release();
	}

	result(): GenerationResult {
		return {
			sequence: this.#sequence.id,
			tokens: this.#tokens,
			finish: this.#finish ?? "aborted",
			positions: this.#positions,
			logits: this.#kept && joined(this.#kept, this.#positions * this.#shape.vocab),
			logitsSha256: this.#hash?.digest() ?? null,
		};
	}

	get #tokensMost(): number {
		const { prompt, maxTokens, forced } = this.#request;
		// The last token is never fed, so it may lie one beyond the context.
		return Math.min(maxTokens, forced?.length ?? maxTokens, this.#shape.contextLength - prompt.length + 1);
	}

	#record(logits: Float32Array): void {
		if (!this.#hash) return;
		this.#hash.update(new Uint8Array(logits.buffer, logits.byteOffset, logits.byteLength));
		this.#kept?.push(logits);
		this.#positions += logits.length / this.#shape.vocab;
	}
}

function joined(parts: readonly Float32Array[], length: number): Float32Array {
	const whole = new Float32Array(length);
	let start = 0;
	for (const part of parts) {
		whole.set(part, start);
		start += part.length;
	}
	return whole;
}
