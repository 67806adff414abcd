import { createHash } from "node:crypto";
import type { DecodeFacts, DecodeReport } from "../backbone/decode/decode-messages.ts";
import type { GenerationRequest, GenerationResult } from "../backbone/decode/generation.ts";
import type { PartialsReport } from "../backbone/decode/partials-check.ts";
import type { RemoteCounts } from "../backbone/decode/remote-layers.ts";
import { argmax, greedy } from "../backbone/decode/sampler.ts";
import type { BackboneSnapshot } from "../backbone/snapshot.ts";
import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { creditOf, defaultPolicy, servedBytesOf } from "../ledger/units.ts";
import { kvrText } from "../wallet/amounts.ts";
import { LogitsComparison } from "./compare-logits.ts";
import type { Divergence, VerifyReport } from "./report.ts";
import { verdictOf } from "./verdict.ts";

/** A decoder as verify uses it; `DecodeClient` is one. */
export interface VerifiedDecoder {
	readonly facts: DecodeFacts;
	generate(request: GenerationRequest, hooks?: { readonly signal?: AbortSignal }): Promise<GenerationResult>;
	report(): Promise<DecodeReport>;
	close(): Promise<void>;
}

export interface VerifiedPrompt {
	readonly text: string;
	readonly tokens: readonly number[];
}

export interface SwarmVerifyOptions {
	/** The run with all experts here. */
	readonly openLocal: () => Promise<VerifiedDecoder>;
	/** The run with the chosen layers' experts elsewhere, prompt rows too, every partial checked. Opened when the local one is closed. */
	readonly openRemote: () => Promise<VerifiedDecoder>;
	/** The swarm that the remote run asks. */
	readonly backbone: { snapshot(): BackboneSnapshot };
	readonly prompts: readonly VerifiedPrompt[];
	/** Tokens to generate for each prompt. */
	readonly tokens: number;
	/** Empty: stop tokens are ignored. */
	readonly stopTokens: readonly number[];
	readonly textOf: (tokens: readonly number[]) => string;
	/** Prompts decoded together in each run. @default one after the other in both */
	readonly batch?: { readonly local: number; readonly remote: number };
	/** Pairs computed here do not make the run incomplete. */
	readonly allowFallback?: boolean;
	readonly clock: Pick<Clock, "monotonic">;
	readonly signal?: AbortSignal;
	readonly progress?: (done: { readonly run: "local" | "remote"; readonly prompts: number }) => void;
}

interface Runs {
	readonly facts: DecodeFacts;
	readonly results: readonly GenerationResult[];
	readonly report: DecodeReport;
	readonly positionsPerSecond: number;
}

/** Decodes each prompt twice, with all experts here and with the remote layers' elsewhere, and compares every position (cli.md, verify). */
export async function verifySwarm(options: SwarmVerifyOptions): Promise<VerifyReport> {
	const local = await decodeAll(await options.openLocal(), "local", options);
	const before = options.backbone.snapshot();
	const remote = await decodeAll(await options.openRemote(), "remote", options);
	const after = options.backbone.snapshot();
	const workers = workersSince(before, after);
	const counts = remote.report.remote;
	const partials = remote.report.partials;
	if (counts === null || partials === null) {
		throw new KvasirError("internal", "Cannot verify: the remote run asked nobody, or checked no partials");
	}
	const compared = compareRuns(local.results, remote.results, local.facts.shape.vocab, options.prompts);
	const { layers, experts, topK, hidden } = local.facts.shape;
	const positions = remote.results.reduce((sum, result) => sum + result.positions, 0);
	const expectedPairs = positions * remote.facts.remoteLayers.length * topK;
	const classes = [local.facts.engineClass, ...workers.map((worker) => worker.class)];
	const verdict = verdictOf({
		complete: options.allowFallback === true || isComplete(counts, expectedPairs),
		classes,
		partials,
		...compared,
	});
	const close = verdict === "identical" || verdict === "equivalent";
	return {
		model: {
			name: local.facts.name,
			modelId: Buffer.from(local.facts.modelId).toString("hex"),
			weights: local.facts.weightsKind,
			...{ layers, experts, topK, hidden },
		},
		remote: {
			layers: remote.facts.remoteLayers,
			asked: counts.asked,
			answered: counts.answered,
			fallback: counts.fallback,
			retried: counts.retried,
			workers,
		},
		tokens: { ...compared.tokens, text: options.textOf(remote.results[0]?.tokens ?? []) },
		argmax: compared.argmax,
		logits: compared.logits,
		partials: { pairs: partials.pairs, identical: partials.identical, worst: partials.worst },
		firstDivergence: close ? null : (divergenceOf(partials, options.prompts) ?? compared.firstDivergence),
		wire: wireSince(before, after),
		served: servedOf(
			workers.reduce((sum, worker) => sum + worker.pairs, 0),
			hidden,
		),
		timing: {
			localTokensPerSecond: local.positionsPerSecond,
			remoteTokensPerSecond: remote.positionsPerSecond,
			roundTrips: counts.roundTrips,
		},
		verdict,
	};
}

/** All prompts, `batch` of them together, greedily, all logits kept; closes the decoder. */
async function decodeAll(
	decoder: VerifiedDecoder,
	run: "local" | "remote",
	options: SwarmVerifyOptions,
): Promise<Runs> {
	const { prompts, tokens, stopTokens, clock, signal, batch = { local: 1, remote: 1 } } = options;
	const generate = (prompt: VerifiedPrompt) =>
		decoder.generate(
			{ prompt: prompt.tokens, maxTokens: tokens, sampling: greedy, stopTokens, logits: "keep" },
			signal === undefined ? {} : { signal },
		);
	try {
		const results: GenerationResult[] = [];
		const startMs = clock.monotonic();
		for (let first = 0; first < prompts.length; first += batch[run]) {
			results.push(...(await Promise.all(prompts.slice(first, first + batch[run]).map(generate))));
			signal?.throwIfAborted();
			options.progress?.({ run, prompts: results.length });
		}
		const seconds = (clock.monotonic() - startMs) / 1000;
		const positions = results.reduce((sum, result) => sum + result.positions, 0);
		return {
			facts: decoder.facts,
			results,
			report: await decoder.report(),
			positionsPerSecond: seconds > 0 ? positions / seconds : 0,
		};
	} finally {
		await decoder.close();
	}
}

function compareRuns(
	local: readonly GenerationResult[],
	remote: readonly GenerationResult[],
	vocab: number,
	prompts: readonly VerifiedPrompt[],
) {
	const comparison = new LogitsComparison();
	const digest = createHash("sha256");
	const tokens = { same: 0, total: 0 };
	let samePositions = true;
	let firstDivergence: Divergence | null = null;
	for (const [index, here] of local.entries()) {
		const there = remote[index]!;
		tokens.total += Math.max(here.tokens.length, there.tokens.length);
		tokens.same += here.tokens.filter((token, at) => token === there.tokens[at]).length;
		samePositions &&= here.positions === there.positions;
		digest.update(new Uint8Array(there.logits!.buffer, there.logits!.byteOffset, there.logits!.byteLength));
		for (let position = 0; position < Math.min(here.positions, there.positions); position++) {
			const expected = here.logits!.subarray(position * vocab, (position + 1) * vocab);
			const actual = there.logits!.subarray(position * vocab, (position + 1) * vocab);
			if (comparison.add(expected, actual) || firstDivergence !== null) continue;
			const token = argmax(expected);
			const values = { local: expected[token]!, remote: actual[token]! };
			firstDivergence = { prompt: prompts[index]!.text, position, layer: null, expert: null, worker: null, ...values };
		}
	}
	const { positions, argmaxSame, identical, ...measures } = comparison.report();
	const logits = { identical: identical && samePositions, sha256: digest.digest("hex"), ...measures };
	return { tokens, argmax: { same: argmaxSame, total: positions }, logits, firstDivergence };
}

function isComplete({ asked, answered, fallback }: RemoteCounts, expectedPairs: number): boolean {
	return asked === expectedPairs && answered === asked && fallback === 0;
}

/** Sequences are numbered from 1 in the order in which each decoder was given the prompts. */
function divergenceOf({ first }: PartialsReport, prompts: readonly VerifiedPrompt[]): Divergence | null {
	if (first === null) return null;
	const { sequence, position, layer, expert, worker, local, remote } = first;
	return { prompt: prompts[sequence - 1]?.text ?? "", position, layer, expert, worker, local, remote };
}

/** Those who answered, with their pairs of this run alone; a worker that came back is one worker. */
function workersSince(before: BackboneSnapshot, after: BackboneSnapshot): VerifyReport["remote"]["workers"] {
	const pairsBefore = new Map(before.served.map(({ key, sinceMs, pairs }) => [`${key} ${sinceMs}`, pairs]));
	const workers = new Map<string, VerifyReport["remote"]["workers"][number]>();
	for (const { key, sinceMs, pairs, rttMsP50, computeMsP50, ...worker } of after.served) {
		const fresh = pairs - (pairsBefore.get(`${key} ${sinceMs}`) ?? 0);
		if (fresh === 0) continue;
		workers.set(key, {
			key,
			class: worker.class,
			pairs: fresh + (workers.get(key)?.pairs ?? 0),
			rttMsP50: rttMsP50 ?? 0,
			computeMsP50: computeMsP50 ?? 0,
		});
	}
	return [...workers.values()];
}

function wireSince(before: BackboneSnapshot, after: BackboneSnapshot): VerifyReport["wire"] {
	return {
		messages: after.messages.sent - before.messages.sent,
		wholeRows: after.messages.wholeRows - before.messages.wholeRows,
		q14: after.messages.q14 - before.messages.q14,
		bytesSent: after.tensorBytes.sent - before.tensorBytes.sent,
		bytesReceived: after.tensorBytes.received - before.tensorBytes.received,
	};
}

function servedOf(pairs: number, hidden: number): VerifyReport["served"] {
	const bytes = servedBytesOf(BigInt(pairs), hidden);
	const { nano } = creditOf(bytes, defaultPolicy.nanoPerMillionBytes, 0n);
	return { pairs, bytes: Number(bytes), units: Number(bytes) / 1e6, kvr: kvrText(nano), nano: String(nano) };
}
