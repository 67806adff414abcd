import { type Backbone, startBackbone } from "../backbone/backbone.ts";
import { openDecodeThread } from "../backbone/decode-client.ts";
import type { DecodeSettings } from "../backbone/decode-messages.ts";
import { addressOf } from "../io/base58.ts";
import type { Model } from "../model/model.ts";
import { openNamedModel } from "../model/resolve-model.ts";
import { defaultPromptOf } from "../model/synthetic.ts";
import { tokenizerOf } from "../model/tokenizer.ts";
import { splitExperts } from "../swarm/expert-split.ts";
import type { VerifyReport } from "../verify/report.ts";
import { verifySwarm } from "../verify/swarm-verify.ts";
import { loadNodeKey } from "../wallet/node-key.ts";
import type { Context } from "./context.ts";
import { dialAt } from "./listen-at.ts";
import { modelFactsOf } from "./model-facts.ts";
import { startOwnSwarm } from "./own-swarm.ts";
import { type HostPort, hostPort } from "./readers.ts";
import { withTemporaryFolder } from "./temporary-folder.ts";
import type { VerifyOptions } from "./verify.ts";

const drainMs = 5_000;

/** Compares a local run with one through a swarm: the one at `--hub`, else one of its own that is gone afterwards. */
export async function verifyThroughSwarm(context: Context, options: VerifyOptions): Promise<VerifyReport> {
	const model = await openNamedModel(context.home, options.model, { requireWeights: options.requireWeights });
	await model.weights.close();
	if (options.hub) return verifyAt(context, options, model, context.home, options.hub);
	return withTemporaryFolder(async (folder) => {
		const identity = await loadNodeKey(folder);
		const swarm = await context.progress("starting workers", () =>
			startOwnSwarm(context, {
				home: folder,
				model: options.model,
				backbones: [addressOf(identity.publicKey)],
				workers: splitExperts(model.shape.experts, options.workers).map((hold) => ({
					hold: [hold],
					args: ["--engine", options.engine, "--threads", String(options.threads)],
				})),
			}),
		);
		try {
			return await verifyAt(context, options, model, folder, hostPort.read(swarm.hubRelay)!);
		} finally {
			await swarm.stop();
		}
	});
}

/** @param keyHome whose node key parks at the hub */
async function verifyAt(
	context: Context,
	options: VerifyOptions,
	model: Model,
	keyHome: string,
	hub: HostPort,
): Promise<VerifyReport> {
	const { clock, random, log } = context;
	const backbone = await startBackbone({
		identity: await loadNodeKey(keyHome),
		model: modelFactsOf(model),
		hub: dialAt(hub),
		// Every single partial is compared, so workers may not sum rows.
		wholeRows: false,
		...{ clock, random, log },
	});
	try {
		const all = [...model.shape.fullAttention.keys()];
		const layers = options.layers === "all" ? all : options.layers;
		const waiting = { timeoutMs: options.wait * 1000, signal: context.signal };
		await context.progress("waiting for workers", () => backbone.waitForCoverage(layers, waiting));
		return await context.progress("decoding", (say) => compare(context, options, { model, backbone, layers }, say));
	} finally {
		await backbone.drain("verified", drainMs);
		await backbone.close();
	}
}

function compare(
	{ clock, signal, home }: Context,
	options: VerifyOptions,
	{ model, backbone, layers }: { model: Model; backbone: Backbone; layers: readonly number[] },
	say: (label: string) => void,
): Promise<VerifyReport> {
	const tokenizer = tokenizerOf(model.metadata);
	const texts = options.prompts.length > 0 ? options.prompts : [defaultPromptOf(model)];
	const { engine, threads, memory, requireWeights } = options;
	const settings: DecodeSettings = {
		...{ home, model: options.model, engine, threads, requireWeights },
		...(memory && { memoryBytes: memory }),
	};
	const remote = { layers, prefill: true, checkPartials: true };
	return verifySwarm({
		openLocal: () => openDecodeThread(settings),
		openRemote: () => openDecodeThread({ ...settings, remote }, backbone.remote),
		backbone,
		prompts: texts.map((text) => ({ text, tokens: tokenizer.encode(text, { special: true }) })),
		tokens: options.tokens,
		stopTokens: model.weightsKind === "synthetic" ? [] : [...tokenizer.endOfGeneration],
		textOf: (tokens) => tokenizer.decode(tokens, { skipSpecial: true }),
		allowFallback: options.allowFallback,
		clock,
		signal,
		progress: ({ run, prompts }) => say(`${run}: ${prompts} of ${texts.length} prompts`),
	});
}
