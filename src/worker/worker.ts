import { KvasirError } from "../errors.ts";
import { describeProof } from "../experts/describe-proof.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import { equalBytes, type KeyPair } from "../io/crypto.ts";
import { failpoint } from "../io/failpoint.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { Model } from "../model/model.ts";
import { limits } from "../protocol/limits.ts";
import type { Link } from "../protocol/link.ts";
import { closeCodes, type EngineFacts, type ExpertRange, type Payout, type WelcomeBody } from "../protocol/messages.ts";
import { bindPayout } from "../protocol/payout.ts";
import { DialLoop, type DialLoopParts } from "./dial.ts";
import type { Dialer } from "./dialer.ts";
import { ExpertKeeper, type Hold, type SliceAccess } from "./expert-keeper.ts";
import type { SignedReceipt, WorkerHome } from "./home.ts";
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
	/** The model file at hand; null: experts come as slices over the gateway. */
	readonly model: Pick<Model, "name" | "modelId" | "shape" | "weights" | "weightsKind"> | null;
	/** What to hold, from --hold (`parseHold`); null: what the backbone assigns. */
	readonly hold: Hold | null;
	/** How slices and manifests are fetched; absent: not at all. */
	readonly slices?: SliceAccess | undefined;
	readonly engine: ExpertEngine;
	readonly engineFacts: Omit<EngineFacts, "class">;
	/** Most bytes of experts, from --memory. */
	readonly memoryBytes: number;
	/** Such as `kvasir 0.1.0`. */
	readonly build: string;
	readonly home: WorkerHome;
	readonly keepReceipt: (receipt: SignedReceipt) => Promise<void>;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly signal: AbortSignal;
	readonly onEvent?: (event: WorkerEvent) => void;
	/** Tests only (NODE_ENV=test): answers wrongly for this expert. */
	readonly corrupt?: { readonly layer: number; readonly expert: number | "all" } | undefined;
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

/** Loading that takes longer goes on beside the links: experts are served as they become ready. */
const linkAfterMs = 1_000;

/**
 * Loads what a file at hand has of the wanted experts, and keeps a link to the gateway's backbone and to those it vouches for.
 * Throws what loading throws; once there are links, that ends the worker.
 */
export async function startWorker(parts: WorkerParts): Promise<Worker> {
	const failed = new AbortController();
	const hooks: KeeperHooks = { onChanged() {}, onShort() {} };
	const keeper = new ExpertKeeper({
		...parts,
		slices: parts.slices ?? null,
		signal: AbortSignal.any([parts.signal, failed.signal]),
		onEvent: (event) => parts.onEvent?.(event),
		onChanged: () => hooks.onChanged(),
		onShort: (state) => hooks.onShort(state),
		onFailed: (error) => failed.abort(error),
	});
	let hasLinks = false;
	if (parts.model !== null) {
		const loading = keeper.loadOwn(parts.model.shape, () => hasLinks);
		const loaded = new AbortController();
		const late = parts.clock.sleep(linkAfterMs, loaded.signal).catch(() => {});
		await Promise.race([loading, late]).finally(() => loaded.abort());
		loading.catch((error: unknown) => {
			if (!parts.signal.aborted) failed.abort(error);
		});
	}
	hasLinks = true;
	return new LinkedWorker(parts, keeper, hooks, failed.signal);
}

/** What the keeper tells the links, once there are any. */
interface KeeperHooks {
	onChanged: () => void;
	onShort: (state: string) => void;
}

class LinkedWorker implements Worker {
	readonly closed: Promise<void>;
	readonly #parts: WorkerParts;
	readonly #keeper: ExpertKeeper;
	readonly #signal: AbortSignal;
	readonly #tally = new Tally();
	readonly #payout: Payout;
	readonly #startedMs: number;
	readonly #servings = new Set<Serving>();
	readonly #main: DialLoop;
	/** Loops to backbones that were vouched for, by base58 key. */
	readonly #vouched = new Map<string, DialLoop>();
	/** The first link's backbone, once known. */
	#mainBackbone: string | null;
	#draining = false;

	/** @param failed aborts, with the error, when going on is pointless */
	constructor(parts: WorkerParts, keeper: ExpertKeeper, hooks: KeeperHooks, failed: AbortSignal) {
		this.#parts = parts;
		this.#keeper = keeper;
		this.#signal = AbortSignal.any([parts.signal, failed]);
		this.#payout = bindPayout(parts.identity, parts.payout);
		this.#startedMs = parts.clock.monotonic();
		this.#mainBackbone = parts.backbone === null ? null : addressOf(parts.backbone);
		hooks.onChanged = () => {
			for (const serving of this.#servings) serving.holdingChanged();
		};
		hooks.onShort = (state) => {
			this.#main.link?.send({ kind: "refuse", id: null, code: "overloaded", text: state });
		};
		this.#main = this.#loop(parts.backbone, false, (link, welcome) => {
			this.#mainBackbone = addressOf(link.peer);
			return this.#serve(link, welcome, () => keeper.meet(link.peer, welcome.model, () => this.#main.link === link));
		});
		this.closed = this.#main.ended.then(() => {
			if (failed.aborted) throw failed.reason;
		});
	}

	redial(): void {
		for (const loop of this.#loops()) loop.redial();
	}

	async drain(reason: string, graceMs: number): Promise<void> {
		this.#draining = true;
		this.#tell({ event: "draining", reason });
		await Promise.all(this.#loops().map((loop) => loop.drain(reason, graceMs)));
	}

	snapshot(): WorkerSnapshot {
		const { gateway, identity, payout, engine, clock } = this.#parts;
		const linkOf = (address: string, { link }: DialLoop) => ({
			backbone: link === null ? address : addressOf(link.peer),
			state: link === null ? ("dialling" as const) : ("linked" as const),
			roundTripMs: link?.roundTripMs ?? null,
		});
		return {
			...this.#tally.snapshot(),
			gateway,
			worker: addressOf(identity.publicKey),
			payout: addressOf(payout),
			engine: engine.proof ? `${engine.engineClass} on ${describeProof(engine.proof)}` : engine.engineClass,
			holds: this.#keeper.held.ranges(),
			heldBytes: engine.bytesHeld,
			upMs: clock.monotonic() - this.#startedMs,
			links: [
				linkOf(this.#mainBackbone ?? "", this.#main),
				...[...this.#vouched].map(([address, loop]) => linkOf(address, loop)),
			],
			draining: this.#draining,
		};
	}

	#loops(): DialLoop[] {
		return [this.#main, ...this.#vouched.values()];
	}

	#loop(backbone: Uint8Array | null, vouched: boolean, serve: DialLoopParts["serve"]): DialLoop {
		const onEvent = (event: WorkerEvent) => this.#tell(event);
		return new DialLoop({
			...this.#parts,
			signal: this.#signal,
			onEvent,
			hello: () => this.#hello(),
			serve,
			backbone,
			vouched,
		});
	}

	#hello() {
		const { build, engine, engineFacts, memoryBytes, hold } = this.#parts;
		const { modelId, held } = this.#keeper;
		// In hello: what the operator wants held. Whoever follows the backbone tells what is ready in `holding`, right after welcome.
		const holds = hold === null || modelId === null ? [] : held.ranges().slice(0, limits.helloRanges);
		return {
			build,
			engine: { ...engineFacts, class: engine.engineClass },
			offer: { ...offered, memoryBytes },
			holds: holds.map((range) => ({ ...range, modelId: modelId! })),
			payout: this.#payout,
		};
	}

	#serve(link: Link, welcome: WelcomeBody, meet = () => this.#requireSameModel(welcome)): Serving {
		try {
			meet();
		} catch (error) {
			link.send({ kind: "refuse", id: null, code: "model_mismatch", text: "" });
			link.close(closeCodes.normal, "model_mismatch");
			throw error;
		}
		const serving = serveLink({
			...this.#parts,
			link,
			welcome,
			held: this.#keeper.held,
			tally: this.#tally,
			onReceipt: (outcome) => this.#received(addressOf(link.peer), outcome),
			onAssign: (assign) => {
				// Two backbones with different wishes would take turns at one memory.
				if (addressOf(link.peer) === this.#mainBackbone) this.#keeper.assigned(assign);
			},
		});
		this.#servings.add(serving);
		serving.ended.then(() => this.#servings.delete(serving));
		for (const key of welcome.backbones) this.#linkTo(key);
		return serving;
	}

	/** A vouched backbone gets what the main one's model allows. */
	#requireSameModel({ model }: WelcomeBody): void {
		const { modelId } = this.#keeper;
		if (modelId !== null && equalBytes(model.modelId, modelId)) return;
		throw new KvasirError("model_mismatch", `Cannot serve ${model.name}: it is not the model held here`);
	}

	/** One more link for each backbone that one we believe vouches for; never a second one to the same. */
	#linkTo(key: Uint8Array): void {
		const address = addressOf(key);
		const own = equalBytes(key, this.#parts.identity.publicKey);
		if (this.#draining || own || address === this.#mainBackbone || this.#vouched.has(address)) return;
		if (this.#vouched.size >= limits.backbones) return;
		const loop = this.#loop(key, true, (link, welcome) => this.#serve(link, welcome));
		this.#vouched.set(address, loop);
		loop.ended
			.catch(({ message }: Error) =>
				this.#parts.log.warn({ backbone: address, message }, "no more links to this backbone"),
			)
			.finally(() => this.#vouched.delete(address));
	}

	#received(backbone: string, outcome: ReceiptOutcome): void {
		if (outcome.kind !== "agreed" && outcome.kind !== "disputed") return;
		const { receipt, body, signature, reply, unpaidPairs } = outcome;
		const countersignature = "signature" in reply.answer ? reply.answer.signature : null;
		failpoint("worker.keep.before");
		this.#parts
			.keepReceipt({ body, signature, countersignature })
			.then(() => failpoint("worker.keep.after"))
			.catch(({ message }: Error) => this.#parts.log.warn({ message }, "a receipt could not be kept"));
		this.#tell({
			event: "receipt",
			backbone,
			number: receipt.number,
			pairs: Number(receipt.pairs),
			servedBytes: Number(receipt.servedBytes),
			agreed: outcome.kind === "agreed",
			unpaid: { ...unpaidPairs },
		});
	}

	#tell(event: WorkerEvent): void {
		this.#parts.onEvent?.(event);
	}
}
