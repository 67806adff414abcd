import { join } from "node:path";
import { type Backbone, type BackboneOptions, startBackbone } from "../../backbone/backbone.ts";
import { type DecodeClient, openDecodeThread } from "../../backbone/decode/decode-client.ts";
import type { DecodeSettings } from "../../backbone/decode/decode-messages.ts";
import { type Evidence, evidenceText } from "../../backbone/pay/evidence.ts";
import type { RemoteExperts } from "../../backbone/remote.ts";
import { addressOf } from "../../io/base58.ts";
import { writePrivateFile } from "../../io/files.ts";
import { lockHome } from "../../io/home-lock.ts";
import type { Metadata } from "../../model/metadata.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { type Tokenizer, tokenizerOf } from "../../model/tokenizer.ts";
import { loadNodeKey } from "../../wallet/node-key.ts";
import { modelFactsOf } from "../model/model-facts.ts";
import type { Context } from "../program/context.ts";
import { type ExpertOffer, offerExperts, openSlices } from "./offer-experts.ts";

/** A model that decodes in a thread, and the swarm that computes its experts. */
export interface DispatchRoom {
	/** Base58: what the hub must list. */
	readonly key: string;
	readonly decode: DecodeClient;
	readonly backbone: Backbone;
	readonly tokenizer: Tokenizer;
	/** Of the model: the chat template is read from it. */
	readonly metadata: Metadata;
	/** Work in flight finishes, receipts are exchanged, workers get a goodbye; nothing is left open. */
	close(reason: string): Promise<void>;
}

type SwarmOptions = Pick<BackboneOptions, "hub" | "park" | "listen" | "wholeRows" | "accepts" | "vouchesFor">;

const drainMs = 5_000;

/** Opens model and swarm under the home's node key and journals, which one process at a time has. Throws `home_in_use`, and what opening the model, the engine or a listener throws. */
export async function openDispatch(
	context: Context,
	settings: DecodeSettings,
	swarm: SwarmOptions,
): Promise<DispatchRoom> {
	const lock = await lockHome(context.home, "backbone");
	try {
		const room = await openRoom(context, settings, swarm);
		return { ...room, close: (reason) => room.close(reason).finally(() => lock.release()) };
	} catch (error) {
		lock.release();
		throw error;
	}
}

async function openRoom(
	{ clock, random, log, home }: Context,
	settings: DecodeSettings,
	swarm: SwarmOptions,
): Promise<DispatchRoom> {
	const identity = await loadNodeKey(home);
	const model = await openNamedModel(settings.home, settings.model);
	const { metadata } = model;
	let backbone: Backbone | null = null;
	let offer: ExpertOffer | null = null;
	const remote: RemoteExperts = {
		request(request) {
			offer?.assigner.routed(request);
			return backbone!.remote.request(request);
		},
		holds: (layer, expert) => backbone!.remote.holds(layer, expert),
	};
	const decode = await openDecodeThread(settings, remote);
	const facts = modelFactsOf(decode.facts);
	try {
		const slices = await openSlices(model, { name: facts.name, identity, home, log });
		backbone = await startBackbone({
			identity,
			model: facts,
			...(slices && { serve: (request, response) => slices.serve(request, response) }),
			clock,
			random,
			log,
			journals: join(home, "journals"),
			audits: {
				engineClass: decode.facts.engineClass,
				recompute: (batch) => decode.compute(batch),
				keep: (evidence) => writePrivateFile(evidencePath(home, evidence), evidenceText(evidence)),
			},
			...swarm,
		});
		if (slices !== null)
			offer = offerExperts(backbone, slices, { facts, layers: settings.remote?.layers ?? "all", clock, log });
	} catch (error) {
		await decode.close();
		throw error;
	}
	const started = backbone;
	return {
		key: addressOf(identity.publicKey),
		decode,
		backbone: started,
		tokenizer: tokenizerOf(metadata),
		metadata,
		async close(reason) {
			offer?.assigner.close();
			await started.drain(reason, drainMs);
			await started.close();
			await offer?.slices.close();
			await decode.close();
		},
	};
}

function evidencePath(home: string, { session, id }: Evidence): string {
	return join(home, "evidence", `${session}-${id}.json`);
}
