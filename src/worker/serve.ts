import type { ExpertEngine } from "../experts/engine.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import { failpoint } from "../io/failpoint.ts";
import type { Logger } from "../io/log.ts";
import type { Link } from "../protocol/link.ts";
import {
	type Assign,
	closeCodes,
	type Dispatch,
	type ReceiptMessage,
	type SessionMessage,
	type WelcomeBody,
} from "../protocol/messages.ts";
import { tensorOfFloats } from "../protocol/tensor.ts";
import { ActivityLog } from "./activity-log.ts";
import { type Computed, ComputeQueue } from "./compute-queue.ts";
import { checkDispatch, type DispatchRules, type Refusal } from "./dispatch-check.ts";
import type { HeldExperts } from "./held-experts.ts";
import { ReceiptDesk, type ReceiptOutcome } from "./receipt-desk.ts";
import type { Tally } from "./tally.ts";

// The serve core: dispatches in, partials out, over any Link. It knows no socket, no file and no Node.

/** How a session ended, seen from the worker. */
export type ServeEnd =
	/** The backbone said goodbye; 0: do not come back. */
	| { readonly kind: "bye"; readonly code: string; readonly text: string; readonly retryAfterMs: number }
	/** This instance's epoch is too low; `epoch` is the one the backbone knows. */
	| { readonly kind: "stale_epoch"; readonly epoch: number }
	/** We drained and left. */
	| { readonly kind: "left" }
	| { readonly kind: "closed"; readonly code: number; readonly reason: string };

export interface ServeParts {
	readonly link: Link;
	readonly welcome: WelcomeBody;
	readonly engine: ExpertEngine;
	readonly held: HeldExperts;
	readonly identity: KeyPair;
	/** The wallet named in hello. */
	readonly payout: Uint8Array;
	readonly clock: Clock;
	readonly log: Logger;
	readonly tally: Tally;
	readonly onReceipt?: (outcome: ReceiptOutcome) => void;
	/** The backbone says which experts it wants held. */
	readonly onAssign?: (assign: Assign) => void;
	/** Tests only: flips one value of every answer for this expert, so that audits have something to find. */
	readonly corrupt?: { readonly layer: number; readonly expert: number | "all" } | undefined;
}

/** A session being served. */
export interface Serving {
	/** Tells the backbone the whole set that is ready now. */
	holdingChanged(): void;
	/** Takes no more work, finishes what it has, lets receipts be exchanged for at most `graceMs`, says goodbye. */
	drain(reason: string, graceMs: number): Promise<void>;
	readonly ended: Promise<ServeEnd>;
}

/** How often a draining session looks whether everything is done. */
const drainLookMs = 20;

/** Serves one session until its link ends. */
export function serveLink(parts: ServeParts): Serving {
	return new ServedLink(parts);
}

class ServedLink implements Serving {
	readonly ended: Promise<ServeEnd>;
	readonly #parts: ServeParts;
	readonly #queue: ComputeQueue;
	readonly #activity = new ActivityLog();
	readonly #desk: ReceiptDesk;
	readonly #rules: DispatchRules;
	#lastId = 0;
	#draining = false;
	#ownEnd: ServeEnd | null = null;

	constructor(parts: ServeParts) {
		const { link, welcome, engine, held, clock } = parts;
		const { model, limits } = welcome;
		this.#parts = parts;
		this.#queue = new ComputeQueue({ engine, hidden: model.hidden, limits, clock });
		this.#desk = new ReceiptDesk({ ...parts, backbone: link.peer, log: this.#activity });
		this.#rules = { model, limits, held, engineClass: engine.engineClass };
		this.ended = link.ended.then(({ code, reason }): ServeEnd => {
			this.#queue.clear();
			return this.#ownEnd ?? { kind: "closed", code, reason };
		});
		this.holdingChanged();
		link.onMessage = (message) => this.#receive(message);
	}

	holdingChanged(): void {
		this.#parts.link.send({ kind: "holding", ready: this.#parts.held.ranges() });
	}

	async drain(reason: string, graceMs: number): Promise<void> {
		const { link, clock } = this.#parts;
		this.#draining = true;
		link.send({ kind: "drain", reason, graceMs });
		let over = false;
		this.ended.then(() => {
			over = true;
		});
		const giveUpMs = clock.monotonic() + graceMs;
		const busy = () => this.#queue.size > 0 || this.#activity.size > 0;
		while (!over && busy() && clock.monotonic() < giveUpMs) await clock.sleep(drainLookMs);
		this.#ownEnd ??= { kind: "left" };
		link.send({ kind: "bye", code: "draining", text: reason, retryAfterMs: 0 });
		link.close(closeCodes.normal, reason);
		await this.ended;
	}

	#receive(message: SessionMessage): void {
		const { link, log, onAssign } = this.#parts;
		if (message.kind === "dispatch") this.#dispatched(message);
		else if (message.kind === "cancel") this.#queue.cancel(message.id);
		else if (message.kind === "receipt") this.#receipted(message);
		else if (message.kind === "assign") onAssign?.(message);
		else if (message.kind === "bye") {
			const { code, text, retryAfterMs } = message;
			this.#ownEnd = { kind: "bye", code, text, retryAfterMs };
			link.close(closeCodes.normal, code);
		} else if (message.kind === "refuse") {
			log.debug({ code: message.code, text: message.text }, "the backbone refused");
			const epoch = message.code === "stale_epoch" ? Number(message.text) : Number.NaN;
			if (!Number.isSafeInteger(epoch)) return;
			this.#ownEnd = { kind: "stale_epoch", epoch };
			link.close(closeCodes.normal, "stale_epoch");
		}
	}

	#dispatched(dispatch: Dispatch): void {
		const { id } = dispatch;
		if (id <= this.#lastId) {
			this.#parts.link.close(closeCodes.malformed, `malformed: id ${id} after ${this.#lastId}`);
			return;
		}
		this.#lastId = id;
		const refusal = this.#draining
			? ({ code: "draining", text: "" } as const)
			: (checkDispatch(dispatch, this.#rules) ??
				this.#queue.add(dispatch, (computed) => this.#finished(dispatch, computed)));
		if (refusal !== null) this.#refuse(id, refusal);
	}

	#finished(dispatch: Dispatch, computed: Computed): void {
		if ("refusal" in computed) {
			this.#refuse(dispatch.id, computed.refusal, computed.cause);
			return;
		}
		const { link, tally, corrupt, welcome } = this.#parts;
		const { hidden } = welcome.model;
		const { vectors, computeUs } = computed;
		if (corrupt !== undefined) corruptAnswer(vectors, dispatch, hidden, corrupt);
		const { id, expert } = dispatch;
		failpoint("worker.answer.before");
		const digest = link.send({ kind: "partials", id, computeUs, dtype: "f32", vectors: tensorOfFloats(vectors) });
		if (digest === null) return;
		failpoint("worker.answer.after");
		this.#activity.answered(id, expert.length, digest);
		tally.answered(expert.length, hidden, computeUs);
	}

	#refuse(id: number, { code, text }: Refusal, cause?: unknown): void {
		const { tally, log, link } = this.#parts;
		tally.refused(code);
		log.debug({ id, code, text, cause }, "refused");
		link.send({ kind: "refuse", id, code, text });
	}

	#receipted(message: ReceiptMessage): void {
		const { tally, log, link, onReceipt } = this.#parts;
		failpoint("worker.receipt.before");
		const outcome = this.#desk.examine(message);
		failpoint("worker.countersign.before");
		tally.receipt(outcome);
		if (outcome.kind === "ignored") log.warn({ reason: outcome.reason }, "a receipt that is not for us");
		else link.send(outcome.reply);
		failpoint("worker.countersign.after");
		onReceipt?.(outcome);
	}
}

/** Flips the sign of the first value of each answer that the expert took part in. */
function corruptAnswer(
	vectors: Float32Array,
	{ layer, mode, rowIndex, expert }: Dispatch,
	hidden: number,
	wrong: { readonly layer: number; readonly expert: number | "all" },
): void {
	if (layer !== wrong.layer) return;
	const starts = new Set<number>();
	expert.forEach((id, pair) => {
		if (wrong.expert === "all" || id === wrong.expert) starts.add((mode === 1 ? rowIndex[pair]! : pair) * hidden);
	});
	for (const at of starts) vectors[at] = vectors[at] === 0 ? 1 : -vectors[at]!;
}
