import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import type { ModelFacts } from "../../protocol/messages.ts";
import type { Roster } from "../links/roster.ts";
import type { WorkerLink } from "../links/worker-link.ts";
import type { AcceptedDispatch } from "../pay/audits.ts";
import type { RemoteAnswer, RemoteExperts, RemoteRequest } from "../remote.ts";
import { HedgeBudget } from "./hedge.ts";
import { RequestRun } from "./request-run.ts";

/** What is written down about a dispatch before its answer is used: ledger.md section 2. */
export interface DispatchAccount {
	/** The answer was asked for, in time and finite: it is paid. False: that could not be written down, and it may not be used. */
	paid(worker: WorkerLink, id: number, pairs: number, answerHash: Uint8Array): boolean;
	unpaid(worker: WorkerLink, id: number, reason: "late" | "non_finite" | "cancelled_late" | "quarantined"): void;
	/** Refused, or its link ended: nothing to pay. */
	void(worker: WorkerLink, id: number): void;
}

/** What the dispatcher did since it started; pairs are distinct (row, expert) pairs. */
export interface DispatchCounts {
	requests: number;
	asked: number;
	answered: number;
	/** Asked again of another holder, after a failure or (hedged) beside a slow one. */
	retried: number;
	hedged: number;
	/** Messages sent, and how many of them ask for sums of whole rows (mode 1), and carry rows as activation blocks (q14). */
	readonly messages: { sent: number; wholeRows: number; q14: number };
	/** Bytes of tensors: rows sent, vectors that came back. */
	readonly tensorBytes: { sent: number; received: number };
	/** Pairs left to the local copy, by reason. */
	readonly unanswered: Map<string, number>;
}

export interface DispatcherParts {
	readonly roster: Roster;
	readonly model: ModelFacts;
	readonly clock: Clock;
	readonly account: DispatchAccount;
	/** The fixed part of a deadline, milliseconds; the bytes' time at the measured rate is added. */
	readonly deadlineMs: number;
	/** May workers sum whole rows (mode 1)? */
	readonly wholeRows: boolean;
	/** May a second worker be asked while the first is slow? @default true */
	readonly hedge?: boolean;
	readonly accepted?: (dispatch: AcceptedDispatch) => void;
}

/** Sends pairs to the workers that hold their experts and collects what comes back in time. Never waits beyond the deadline. */
export class Dispatcher implements RemoteExperts {
	readonly counts: DispatchCounts = {
		...{ requests: 0, asked: 0, answered: 0, retried: 0, hedged: 0 },
		messages: { sent: 0, wholeRows: 0, q14: 0 },
		tensorBytes: { sent: 0, received: 0 },
		unanswered: new Map(),
	};
	readonly #parts: DispatcherParts;
	readonly #hedges = new HedgeBudget();
	#closed = false;

	constructor(parts: DispatcherParts) {
		this.#parts = parts;
	}

	holds(layer: number, expert: number): boolean {
		return this.#parts.roster.usable.some((worker) => worker.holdings.has(layer, expert));
	}

	async request(request: RemoteRequest, signal?: AbortSignal): Promise<RemoteAnswer> {
		this.#refuseWhenClosed();
		signal?.throwIfAborted();
		const { counts } = this;
		const pairs = request.expert.length;
		this.#hedges.asked(pairs);
		const answer = await new RequestRun({ ...this.#parts, counts, hedges: this.#hedges }, request, signal).answer();
		signal?.throwIfAborted();
		this.#refuseWhenClosed();
		let unanswered = 0;
		for (const { reason, pairs: failed } of answer.failures) {
			unanswered += failed;
			counts.unanswered.set(reason, (counts.unanswered.get(reason) ?? 0) + failed);
		}
		counts.requests++;
		counts.asked += pairs;
		counts.answered += pairs - unanswered;
		counts.retried += answer.retried;
		counts.hedged = this.#hedges.hedged;
		return answer;
	}

	/** Requests under way reject with `closed` as soon as their links have ended. */
	close(): void {
		this.#closed = true;
	}

	#refuseWhenClosed(): void {
		if (this.#closed) throw new KvasirError("closed", "Cannot ask workers: the backbone is closing");
	}
}
