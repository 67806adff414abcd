import type { Backbone } from "../../backbone/backbone.ts";
import { openDecodeThread } from "../../backbone/decode/decode-client.ts";
import type { DecodeSettings } from "../../backbone/decode/decode-messages.ts";
import { KvasirError } from "../../errors.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { Model } from "../../model/model.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { defaultPromptOf } from "../../model/synthetic.ts";
import { tokenizerOf } from "../../model/tokenizer.ts";
import type { VerifyReport } from "../../verify/report.ts";
import { verifySwarm } from "../../verify/swarm-verify.ts";
import { loadNodeKey } from "../../wallet/node-key.ts";
import { withBackbone, withOwnSwarm } from "../own-swarm.ts";
import type { Context } from "../program/context.ts";
import type { HostPort, LayerChoice } from "../program/readers.ts";
import type { VerifyOptions } from "./verify.ts";

/** Compares a local run with one through a swarm: the one at `--hub`, else one of its own that is gone afterwards. */
export async function verifyThroughSwarm(context: Context, options: VerifyOptions): Promise<VerifyReport> {
	const model = await openNamedModel(context.home, options.model, { requireWeights: options.requireWeights });
	await model.weights.close();
	const layers = layersOf(model, options.layers);
	const wholeRows = options.mode === 1;
	const verifyAt = (hub: HostPort, identity: KeyPair) =>
		withBackbone(context, { model, hub, identity, layers, waitMs: options.wait * 1000, wholeRows }, (backbone) =>
			context.progress("decoding", (say) => compare(context, options, { model, backbone, layers }, say)),
		);
	if (options.hub) return verifyAt(options.hub, await loadNodeKey(context.home));
	const { workers = 2 } = options;
	return withOwnSwarm(context, { ...options, workers, wholeLayers: wholeRows }, model.shape, verifyAt);
}

/** Checked before any process is started. Throws `usage` for a layer there is not. */
function layersOf({ shape }: Model, chosen: LayerChoice): readonly number[] {
	const all = [...shape.fullAttention.keys()];
	const alien = chosen === "all" ? undefined : chosen.find((layer) => !all.includes(layer));
	if (alien === undefined) return chosen === "all" ? all : chosen;
	throw new KvasirError("usage", `Cannot make layer ${alien} remote: the model has layers 0 to ${all.length - 1}`);
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
	const { batch, dtype } = options;
	const remote = { layers, prefill: true, checkPartials: true, ...(dtype && { dtype }) };
	return verifySwarm({
		openLocal: () => openDecodeThread(settings),
		openRemote: () => openDecodeThread({ ...settings, remote }, backbone.remote),
		backbone,
		prompts: texts.map((text) => ({ text, tokens: tokenizer.encode(text, { special: true }) })),
		tokens: options.tokens,
		stopTokens: model.weightsKind === "synthetic" ? [] : [...tokenizer.endOfGeneration],
		textOf: (tokens) => tokenizer.decode(tokens, { skipSpecial: true }),
		// canonical-1 promises the same bits alone and in company; other engines are compared in the same company.
		batch: { local: engine === "canonical" ? 1 : batch, remote: batch },
		allowFallback: options.allowFallback,
		clock,
		signal,
		progress: ({ run, prompts }) => say(`${run}: ${prompts} of ${texts.length} prompts`),
	});
}
