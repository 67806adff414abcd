import { KvasirError } from "../errors.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import { equalBytes, type KeyPair } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { Model } from "../model/model.ts";
import { limits } from "../protocol/limits.ts";
import type { Link } from "../protocol/link.ts";
import { type Assign, closeCodes, type EngineFacts, type ExpertRange, type WelcomeBody } from "../protocol/messages.ts";
import { bindPayout } from "../protocol/payout.ts";
import { changeHoldings, expertBytes, loadExperts, planHoldings } from "./capacity.ts";
import { type DialLoop, startDialLoop } from "./dial.ts";
import type { Dialer } from "./dialer.ts";
import { HeldExperts } from "./held-experts.ts";
import type { WorkerHome } from "./home.ts";
import type { ReceiptOutcome } from "./receipt-desk.ts";
import { type Serving, serveLink } from "./serve.ts";
import { Tally, type TallySnapshot } from "./tally.ts";
import type { WorkerEvent } from "./worker-event.ts";

/** What a worker offers each backbone beside its memory: as much as the wire allows; the backbone lowers it. */
const offered = { rowsMax: limits.rows, dispatchesMax: 64, inFlightBytesMax: 64 * 1024 * 1024 } as const;

export interface WorkerParts {
	readonly dial: Dialer;
	/** From `joinTarget`: the gateway's host and the pinned backbone. */
	readonly gateway: string;
	readonly backbone: Uint8Array | null;
	readonly identity: KeyPair;
	/** The wallet to be paid, 32 bytes. */
	readonly payout: Uint8Array;
	readonly model: Pick<Model, "name" | "modelId" | "shape" | "weights">;
	/** What to hold (`parseHold`); null: what fits, until the backbone says which. */
	readonly ranges: readonly ExpertRange[] | null;
	readonly engine: ExpertEngine;
	readonly engineFacts: Omit<EngineFacts, "class">;
	/** Most bytes of experts, from --memory. */
	readonly memoryBytes: number;
	/** Such as `kvasir 0.1.0`. */
	readonly build: string;
	readonly home: WorkerHome;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly signal: AbortSignal;
	readonly onEvent?: (event: WorkerEvent) => void;
	/** Tests only (NODE_ENV=test): answers wrongly for this expert. */
	readonly corrupt?: { readonly layer: number; readonly expert: number } | undefined;
}

/** Everything about a worker at one moment, as one plain value. */
export interface WorkerSnapshot extends TallySnapshot {
	readonly gateway: string;
	readonly worker: string;
	readonly payout: string;
	readonly engine: string;
	readonly holds: readonly ExpertRange[];
	readonly heldBytes: number;
	readonly upMs: number;
	readonly links: readonly {
		readonly backbone: string;
		readonly state: "linked" | "dialling";
		readonly roundTripMs: number | null;
	}[];
	readonly draining: boolean;
}

export interface Worker {
	/** Dials again at once (SIGHUP, wake). */
	redial(): void;
	/** No new work, finish, exchange receipts, say goodbye; then `closed` resolves. */
	drain(reason: string, graceMs: number): Promise<void>;
	/** Rejects with the error that makes it pointless to go on: `key_changed`, `key_in_use`, and at the first contact `auth`, `version`, ... */
	readonly closed: Promise<void>;
	snapshot(): WorkerSnapshot;
}

/** Loads the experts, then keeps a link to the gateway's backbone and to those it vouches for. Throws what loading throws. */
export async function startWorker(parts: WorkerParts): Promise<Worker> {
	const { engine, identity, model, clock, log, signal } = parts;
	const onEvent = parts.onEvent ?? (() => {});
	const startedMs = clock.monotonic();
	const held = new HeldExperts();
	const tally = new Tally();
	const payout = bindPayout(identity, parts.payout);
	const servings = new Set<Serving>();
	/** By base58 key of the backbone; the first, whose key may not be known yet, under "". */
	const loops = new Map<string, DialLoop>();
	/** The first link's backbone, once known. */
	let mainBackbone = parts.backbone === null ? null : addressOf(parts.backbone);
	let draining = false;
	let changing: Promise<void> = Promise.resolve();

	const loading = {
		model,
		engine,
		held,
		signal,
		asMuchAsFits: parts.ranges === null,
		onProgress: (done: number, total: number) => onEvent({ event: "loading", done, total }),
	};
	await loadExperts(parts.ranges ?? (await plan(parts)), loading);
	onEvent({ event: "holding", experts: held.count, bytes: engine.bytesHeld });

	const hello = () => ({
		build: parts.build,
		engine: { ...parts.engineFacts, class: engine.engineClass },
		offer: { ...offered, memoryBytes: parts.memoryBytes },
		holds: held
			.ranges()
			.slice(0, limits.helloRanges)
			.map((range) => ({ ...range, modelId: model.modelId })),
		payout,
	});

	function serve(link: Link, welcome: WelcomeBody): Serving {
		if (!equalBytes(welcome.model.modelId, model.modelId)) {
			link.send({ kind: "refuse", id: null, code: "model_mismatch", text: model.name });
			link.close(closeCodes.normal, "model_mismatch");
			throw new KvasirError("model_mismatch", `Cannot serve ${model.name}: the backbone runs ${welcome.model.name}`, {
				hint: "Join with the same model file (--model), byte for byte",
			});
		}
		const serving = serveLink({
			...parts,
			link,
			welcome,
			held,
			tally,
			onReceipt: (outcome) => received(addressOf(link.peer), outcome),
			onAssign: (assign) => assigned(assign),
		});
		servings.add(serving);
		serving.ended.then(() => servings.delete(serving));
		for (const key of welcome.backbones) linkTo(key);
		return serving;
	}

	/** One more link for each backbone that one we believe vouches for; never a second one to the same. */
	function linkTo(key: Uint8Array): void {
		const address = addressOf(key);
		if (draining || address === mainBackbone || equalBytes(key, identity.publicKey)) return;
		if (loops.has(address) || loops.size > limits.backbones) return;
		const loop = startDialLoop({ ...parts, onEvent, hello, serve, backbone: key, vouched: true });
		loops.set(address, loop);
		loop.ended
			.catch((error: Error) => log.warn({ backbone: address, error: error.message }, "no more links to this backbone"))
			.finally(() => loops.delete(address));
	}

	function received(backbone: string, outcome: ReceiptOutcome): void {
		if (outcome.kind !== "agreed" && outcome.kind !== "disputed") return;
		const { receipt, body, signature, reply, unpaidPairs } = outcome;
		const countersignature = "signature" in reply.answer ? reply.answer.signature : null;
		parts.home
			.keepReceipt({ body, signature, countersignature })
			.catch((error: Error) => log.warn({ error: error.message }, "a receipt could not be kept"));
		onEvent({
			event: "receipt",
			backbone,
			number: receipt.number,
			pairs: Number(receipt.pairs),
			servedBytes: Number(receipt.servedBytes),
			agreed: outcome.kind === "agreed",
			unpaid: { ...unpaidPairs },
		});
	}

	/** The backbone's wish counts only where the operator said nothing (--hold). One change at a time. */
	function assigned({ wanted }: Assign): void {
		if (parts.ranges !== null) return;
		const within = wanted.filter(
			({ layer, first, count }) => layer < model.shape.layers && first + count <= model.shape.experts,
		);
		changing = changing
			.then(() => changeHoldings(within, loading))
			.catch((error: Error) => log.warn({ error: error.message }, "an assignment could not be followed"))
			.then(() => {
				onEvent({ event: "holding", experts: held.count, bytes: engine.bytesHeld });
				for (const serving of servings) serving.holdingChanged();
			});
	}

	function serveMain(link: Link, welcome: WelcomeBody): Serving {
		mainBackbone = addressOf(link.peer);
		return serve(link, welcome);
	}

	const main = startDialLoop({ ...parts, onEvent, hello, serve: serveMain, vouched: false });
	loops.set("", main);
	return {
		redial() {
			for (const loop of loops.values()) loop.redial();
		},
		async drain(reason, graceMs) {
			draining = true;
			onEvent({ event: "draining", reason });
			await Promise.all([...loops.values()].map((loop) => loop.drain(reason, graceMs)));
		},
		closed: main.ended,
		snapshot: () => ({
			...tally.snapshot(),
			gateway: parts.gateway,
			worker: addressOf(identity.publicKey),
			payout: addressOf(parts.payout),
			engine: engine.engineClass,
			holds: held.ranges(),
			heldBytes: engine.bytesHeld,
			upMs: clock.monotonic() - startedMs,
			links: [...loops].map(([address, { link }]) => ({
				backbone: link === null ? address : addressOf(link.peer),
				state: link === null ? ("dialling" as const) : ("linked" as const),
				roundTripMs: link?.roundTripMs ?? null,
			})),
			draining,
		}),
	};
}

async function plan({ model, memoryBytes, random }: WorkerParts): Promise<ExpertRange[]> {
	const { layers, experts } = model.shape;
	return planHoldings({ layers, experts }, expertBytes(await model.weights.expert(0, 0)), memoryBytes, random);
}
