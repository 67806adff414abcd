import type { ExpertEngine } from "../experts/engine.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
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
import { ComputeQueue } from "./compute-queue.ts";
import { checkDispatch, type Refusal } from "./dispatch-check.ts";
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
	readonly onDrain?: (reason: string) => void;
	/** Tests only: flips one value of every answer for this expert, so that audits have something to find. */
	readonly corrupt?: { readonly layer: number; readonly expert: number } | undefined;
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
	const { link, welcome, engine, held, clock, log, tally } = parts;
	const { hidden } = welcome.model;
	const queue = new ComputeQueue({ engine, hidden, limits: welcome.limits, clock });
	const activity = new ActivityLog();
	const desk = new ReceiptDesk({ ...parts, backbone: link.peer, log: activity });
	const rules = { model: welcome.model, limits: welcome.limits, held, engineClass: engine.engineClass };
	let lastId = 0;
	let draining = false;
	let ownEnd: ServeEnd | null = null;

	function refuse(id: number, { code, text }: Refusal, cause?: unknown): void {
		tally.refused(code);
		log.debug({ id, code, text, cause }, "refused");
		link.send({ kind: "refuse", id, code, text });
	}

	function dispatched(dispatch: Dispatch): void {
		const { id, expert } = dispatch;
		if (id <= lastId) {
			link.close(closeCodes.malformed, `malformed: id ${id} after ${lastId}`);
			return;
		}
		lastId = id;
		const refusal = draining
			? ({ code: "draining", text: "" } as const)
			: (checkDispatch(dispatch, rules) ?? queue.add(dispatch, finished));
		if (refusal !== null) refuse(id, refusal);

		function finished(computed: Parameters<Parameters<typeof queue.add>[1]>[0]): void {
			if ("refusal" in computed) {
				refuse(id, computed.refusal, computed.cause);
				return;
			}
			const { vectors, computeUs } = computed;
			if (parts.corrupt !== undefined) corruptAnswer(vectors, dispatch, hidden, parts.corrupt);
			const digest = link.send({ kind: "partials", id, computeUs, dtype: "f32", vectors: tensorOfFloats(vectors) });
			if (digest === null) return;
			activity.answered(id, expert.length, digest);
			tally.answered(expert.length, hidden, computeUs);
		}
	}

	function received(message: SessionMessage): void {
		if (message.kind === "dispatch") dispatched(message);
		else if (message.kind === "cancel") queue.cancel(message.id);
		else if (message.kind === "receipt") receipted(message);
		else if (message.kind === "assign") parts.onAssign?.(message);
		else if (message.kind === "drain") parts.onDrain?.(message.reason);
		else if (message.kind === "bye") {
			const { code, text, retryAfterMs } = message;
			ownEnd = { kind: "bye", code, text, retryAfterMs };
			link.close(closeCodes.normal, code);
		} else if (message.kind === "refuse") {
			log.debug({ code: message.code, text: message.text }, "the backbone refused");
			const epoch = message.code === "stale_epoch" ? Number(message.text) : Number.NaN;
			if (!Number.isSafeInteger(epoch)) return;
			ownEnd = { kind: "stale_epoch", epoch };
			link.close(closeCodes.normal, "stale_epoch");
		}
	}

	function receipted(message: ReceiptMessage): void {
		const outcome = desk.examine(message);
		tally.receipt(outcome);
		if (outcome.kind === "ignored") log.warn({ reason: outcome.reason }, "a receipt that is not for us");
		else link.send(outcome.reply);
		parts.onReceipt?.(outcome);
	}

	const ended = link.ended.then((end): ServeEnd => {
		queue.clear();
		return ownEnd ?? { kind: "closed", code: end.code, reason: end.reason };
	});
	link.send({ kind: "holding", ready: held.ranges() });
	link.onMessage = received;
	return {
		holdingChanged() {
			link.send({ kind: "holding", ready: held.ranges() });
		},
		async drain(reason, graceMs) {
			draining = true;
			link.send({ kind: "drain", reason, graceMs });
			let over = false;
			ended.then(() => {
				over = true;
			});
			const giveUpMs = clock.monotonic() + graceMs;
			while (!over && (queue.size > 0 || activity.size > 0) && clock.monotonic() < giveUpMs) {
				await clock.sleep(drainLookMs);
			}
			ownEnd ??= { kind: "left" };
			link.send({ kind: "bye", code: "draining", text: reason, retryAfterMs: 0 });
			link.close(closeCodes.normal, reason);
			await ended;
		},
		ended,
	};
}

/** Flips the sign of the first value of each answer that the expert took part in. */
function corruptAnswer(
	vectors: Float32Array,
	{ layer, mode, rowIndex, expert }: Dispatch,
	hidden: number,
	wrong: { readonly layer: number; readonly expert: number },
): void {
	if (layer !== wrong.layer) return;
	expert.forEach((id, pair) => {
		if (id !== wrong.expert) return;
		const at = (mode === 1 ? rowIndex[pair]! : pair) * hidden;
		vectors[at] = vectors[at] === 0 ? 1 : -vectors[at]!;
	});
}
