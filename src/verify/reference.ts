import { createHash } from "node:crypto";
import type { DecodeSettings } from "../backbone/decode/decode-messages.ts";
import { type DecodeRoom, openDecodeRoom } from "../backbone/decode/decode-room.ts";
import type { GenerationResult } from "../backbone/decode/generation.ts";
import { argmax, greedy } from "../backbone/decode/sampler.ts";
import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { tokenizerOf } from "../model/tokenizer.ts";
import { LogitsComparison } from "./compare-logits.ts";
import { openReference, type ReferenceFile, type ReferencePrompt } from "./reference-file.ts";
import type { Divergence, VerifyReport } from "./report.ts";

/** Every recorded position must be this close for `equivalent`. */
const leastCosine = 0.99;

export interface ReferenceOptions {
	/** The recording: JSON, with its `.logits.f32` beside it. */
	readonly referencePath: string;
	/** Model and engine; nothing of it is remote. */
	readonly settings: Omit<DecodeSettings, "remote">;
	readonly clock: Pick<Clock, "monotonic">;
	readonly signal?: AbortSignal;
}

/**
 * Compares one local run, teacher-forced along the recorded tokens, with what another implementation recorded (cli.md,
 * `verify --reference`). Throws what opening the recording and the model throws, and `bad_file` when they do not belong together.
 */
export async function verifyReference(options: ReferenceOptions): Promise<VerifyReport> {
	const reference = await openReference(options.referencePath);
	try {
		const room = await openDecodeRoom(options.settings);
		try {
			return await compareRuns(reference, room, options);
		} finally {
			await room.close();
		}
	} finally {
		await reference.close();
	}
}

async function compareRuns(
	reference: ReferenceFile,
	room: DecodeRoom,
	{ clock, signal }: ReferenceOptions,
): Promise<VerifyReport> {
	const { shape } = room.facts;
	if (reference.vocab !== shape.vocab) {
		const state = `it has ${reference.vocab} tokens, the model ${shape.vocab}`;
		throw new KvasirError("bad_file", `Cannot compare with the reference: ${state}`);
	}
	const comparison = new LogitsComparison();
	const digest = createHash("sha256");
	const tokens = { same: 0, total: 0 };
	let firstDivergence: Divergence | null = null;
	let text = "";
	let positions = 0;
	let decodeMs = 0;
	for (const prompt of reference.prompts) {
		const startMs = clock.monotonic();
		const run = await runForced(room, prompt, signal);
		decodeMs += clock.monotonic() - startMs;
		positions += run.positions;
		const chosen = chosenTokens(run, prompt, shape.vocab);
		tokens.total += prompt.tokens.length;
		tokens.same += chosen.filter((token, step) => token === prompt.tokens[step]).length;
		text ||= tokenizerOf(room.decoder.model.metadata).decode(chosen);
		for (const [position, row] of [...prompt.rows].sort(([a], [b]) => a - b)) {
			const actual = run.logits!.subarray(position * shape.vocab, (position + 1) * shape.vocab);
			const expected = await reference.row(row);
			digest.update(new Uint8Array(actual.buffer, actual.byteOffset, actual.byteLength));
			if (!comparison.add(expected, actual)) {
				firstDivergence ??= divergenceAt(prompt.id, position, expected, actual);
			}
		}
	}
	const { identical, argmaxSame, positions: compared, ...measures } = comparison.report();
	const equivalent = argmaxSame === compared && measures.cosineMin >= leastCosine;
	return {
		model: modelOf(room),
		remote: { layers: [], asked: 0, answered: 0, fallback: 0, retried: 0, workers: [] },
		tokens: { ...tokens, text },
		argmax: { same: argmaxSame, total: compared },
		logits: { identical, sha256: digest.digest("hex"), ...measures },
		partials: { pairs: 0, identical: 0, worst: 0 },
		firstDivergence,
		wire: { messages: 0, wholeRows: 0, q14: 0, bytesSent: 0, bytesReceived: 0 },
		served: { pairs: 0, bytes: 0, units: 0, kvr: "0", nano: "0" },
		timing: { localTokensPerSecond: (1000 * positions) / decodeMs, remoteTokensPerSecond: 0, roundTrips: 0 },
		verdict: identical ? "identical" : equivalent ? "equivalent" : "different",
	};
}

/** Feeds the prompt and the recorded tokens, whatever the logits say, and keeps all logits. */
async function runForced(
	room: DecodeRoom,
	prompt: ReferencePrompt,
	signal: AbortSignal | undefined,
): Promise<GenerationResult> {
	const run = await room.scheduler.generate(
		{
			prompt: prompt.promptTokens,
			maxTokens: prompt.tokens.length,
			forced: prompt.tokens,
			sampling: greedy,
			logits: "keep",
		},
		signal ? { signal } : {},
	);
	signal?.throwIfAborted();
	return run;
}

/** What the model itself would have chosen at each generated step. */
function chosenTokens(
	{ logits }: GenerationResult,
	{ promptTokens, tokens }: ReferencePrompt,
	vocab: number,
): number[] {
	return tokens.map((_, step) => {
		const position = promptTokens.length - 1 + step;
		return argmax(logits!.subarray(position * vocab, (position + 1) * vocab));
	});
}

function divergenceAt(prompt: string, position: number, expected: Float32Array, actual: Float32Array): Divergence {
	const token = argmax(expected);
	const values = { local: actual[token]!, remote: expected[token]! };
	return { prompt, position, layer: null, expert: null, worker: null, ...values };
}

function modelOf({ facts }: DecodeRoom): VerifyReport["model"] {
	const { layers, experts, topK, hidden } = facts.shape;
	const modelId = Buffer.from(facts.modelId).toString("hex");
	return { name: facts.name, modelId, weights: facts.weightsKind, layers, experts, topK, hidden };
}
