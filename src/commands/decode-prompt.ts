import { formatCount } from "../io/format-amounts.ts";
import type { Context } from "./context.ts";
import type { DispatchRoom } from "./open-dispatch.ts";

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

/** One decoded prompt, as the `done` event tells it. */
export type PromptRun = Awaited<ReturnType<typeof decodePrompt>>;

/** Waits for workers, decodes one prompt, streams its text. Throws `remote_required` or `timeout` with `--require-remote`. */
export async function decodePrompt(context: Context, room: DispatchRoom, prompt: string, ask: Ask) {
	const { decode, tokenizer } = room;
	const tokens = tokenizer.encode(prompt, { special: true });
	await waitForWorkers(context, room, ask);
	const { temperature, topK, topP, seed } = ask;
	const text = tokenizer.stream({ skipSpecial: true });
	const startMs = context.clock.monotonic();
	const result = await decode.generate(
		{
			prompt: tokens,
			maxTokens: ask.tokens,
			sampling: { temperature, topK, topP, seed },
			stopTokens: decode.facts.weightsKind === "synthetic" ? [] : [...tokenizer.endOfGeneration],
			logits: "digest",
		},
		{
			signal: context.signal,
			onToken(token, index) {
				const piece = text.push(token);
				context.emit({ event: "token", index, token, text: piece });
				context.write(piece);
			},
		},
	);
	const { remote, times } = await decode.report();
	return {
		prompt,
		text: tokenizer.decode(result.tokens, { skipSpecial: true }),
		tokens: result.tokens,
		finish: result.finish,
		positions: result.positions,
		logitsSha256: Buffer.from(result.logitsSha256!).toString("hex"),
		remote,
		times,
		seconds: (context.clock.monotonic() - startMs) / 1000,
		workers: room.backbone.snapshot().served,
	};
}

/** Lines for people under the text. */
export function describeRun({ tokens, seconds, remote }: PromptRun): string {
	const pace = `${tokens.length} tokens, ${(tokens.length / seconds).toFixed(1)} a second`;
	if (remote === null) return pace;
	const failures = Object.entries(remote.failures).map(([reason, pairs]) => `${reason} ${formatCount(pairs)}`);
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
