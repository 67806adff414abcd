import { formatCount } from "../../io/format-amounts.ts";
import type { Context } from "../program/context.ts";
import type { DispatchRoom } from "./open-dispatch.ts";
import { reportSince } from "./run-report.ts";

/** How to decode. */
export interface Ask {
	readonly tokens: number;
	readonly temperature: number;
	readonly topK: number;
	readonly topP: number;
	readonly seed: number;
	readonly requireRemote: boolean;
	/** How long workers may take to hold every expert of the remote layers. */
	readonly waitMs: number;
}

/** What became of one prompt. */
export type Answer = Awaited<ReturnType<typeof decodePrompt>>;
/** What became of prompts that were decoded together, as the `done` event tells it. */
export type PromptRun = Awaited<ReturnType<typeof decodePrompts>>;

/**
 * Waits for workers, then decodes the prompts together: they share each layer's dispatches. The text of a single one is
 * streamed. Throws `remote_required` or `timeout` with `--require-remote`.
 */
export async function decodePrompts(context: Context, room: DispatchRoom, prompts: readonly string[], ask: Ask) {
	await waitForWorkers(context, room, ask);
	const before = await room.decode.report();
	const startMs = context.clock.monotonic();
	const stream = prompts.length === 1;
	const answers = await Promise.all(
		prompts.map((_, index) => decodePrompt(context, room, { prompts, index, stream }, ask)),
	);
	const { remote, times } = reportSince(before, await room.decode.report());
	const seconds = (context.clock.monotonic() - startMs) / 1000;
	return { answers, remote, times, seconds, workers: room.backbone.snapshot().served };
}

async function decodePrompt(
	context: Context,
	{ decode, tokenizer }: DispatchRoom,
	{ prompts, index: number, stream }: { prompts: readonly string[]; index: number; stream: boolean },
	ask: Ask,
) {
	const prompt = prompts[number]!;
	const { temperature, topK, topP, seed } = ask;
	const text = tokenizer.stream({ skipSpecial: true });
	const result = await decode.generate(
		{
			prompt: tokenizer.encode(prompt, { special: true }),
			maxTokens: ask.tokens,
			sampling: { temperature, topK, topP, seed },
			stopTokens: decode.facts.weightsKind === "synthetic" ? [] : [...tokenizer.endOfGeneration],
			logits: "digest",
		},
		{
			signal: context.signal,
			onToken(token, index) {
				const piece = text.push(token);
				context.emit({ event: "token", prompt: number, index, token, text: piece });
				if (stream) context.write(piece);
			},
		},
	);
	const whole = tokenizer.decode(result.tokens, { skipSpecial: true });
	context.write(stream ? "\n" : `${prompt}${whole}\n`);
	const { tokens, finish, positions } = result;
	return {
		prompt,
		text: whole,
		tokens,
		finish,
		positions,
		logitsSha256: Buffer.from(result.logitsSha256!).toString("hex"),
	};
}

/** One line for people under the text. */
export function describeRun({ answers, seconds, remote }: PromptRun): string {
	const tokens = answers.reduce((sum, answer) => sum + answer.tokens.length, 0);
	const pace = `${tokens} tokens, ${(tokens / seconds).toFixed(1)} a second`;
	if (remote === null || remote.asked === 0) return pace;
	const failed = Object.entries(remote.failures).filter(([, pairs]) => pairs > 0);
	const failures = failed.map(([reason, pairs]) => `${reason} ${formatCount(pairs)}`);
	const pairs = `${formatCount(remote.answered)} of ${formatCount(remote.asked)} pairs by workers`;
	return [pace, pairs, `${formatCount(remote.fallback)} computed here`, ...failures].join(", ");
}

/** Without `--require-remote` workers that do not come in time are not needed. */
async function waitForWorkers(context: Context, { backbone, decode }: DispatchRoom, ask: Ask): Promise<void> {
	const layers = decode.facts.remoteLayers;
	if (layers.length === 0 || ask.waitMs === 0) return;
	try {
		const waiting = { timeoutMs: ask.waitMs, signal: context.signal };
		await context.progress("waiting for workers", () => backbone.waitForCoverage(layers, waiting));
	} catch (error) {
		if (ask.requireRemote || context.signal.aborted) throw error;
		context.log.warn({ missing: backbone.gaps(layers) }, "not every expert has a worker; the others are computed here");
	}
}
