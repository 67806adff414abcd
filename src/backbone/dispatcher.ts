import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { limits } from "../protocol/limits.ts";
import type { ModelFacts } from "../protocol/messages.ts";
import { AnswerBuffer } from "./answer-buffer.ts";
import type { AcceptedDispatch } from "./audits.ts";
import { dispatchMessage } from "./dispatch-rows.ts";
import type { Outcome } from "./lane.ts";
import { type PlannedDispatch, planDispatches } from "./plan.ts";
import type { RemoteAnswer, RemoteExperts, RemoteRequest } from "./remote.ts";
import type { Roster } from "./roster.ts";
import type { WorkerLink } from "./worker-link.ts";

/** What is written down about a dispatch before its answer is used: ledger.md section 2. */
export interface DispatchAccount {
	/** The answer was asked for, in time and finite: it is paid. False: that could not be written down, and it may not be used. */
	paid(worker: WorkerLink, id: number, pairs: number, answerHash: Uint8Array): boolean;
	unpaid(worker: WorkerLink, id: number, reason: "late" | "non_finite" | "cancelled_late"): void;
	/** Refused, or its link ended: nothing to pay. */
	void(worker: WorkerLink, id: number): void;
}

/** What the dispatcher did since it started; pairs are distinct (row, expert) pairs. */
export interface DispatchCounts {
	requests: number;
	asked: number;
	answered: number;
	retried: number;
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
	readonly accepted?: (dispatch: AcceptedDispatch) => void;
}

/** Sends pairs to the workers that hold their experts and collects what comes back in time. Never waits beyond the deadline. */
export class Dispatcher implements RemoteExperts {
	readonly counts: DispatchCounts = { requests: 0, asked: 0, answered: 0, retried: 0, unanswered: new Map() };
	readonly #parts: DispatcherParts;
	readonly #rowBytes: number;
	#closed = false;

	constructor(parts: DispatcherParts) {
		this.#parts = parts;
		this.#rowBytes = parts.model.hidden * 4;
	}

	holds(layer: number, expert: number): boolean {
		return this.#parts.roster.usable.some((worker) => worker.holdings.has(layer, expert));
	}

	async request(request: RemoteRequest, signal?: AbortSignal): Promise<RemoteAnswer> {
		this.#refuseWhenClosed();
		signal?.throwIfAborted();
		const run = new Attempt(this.#parts, this.#rowBytes, request, signal);
		const answer = await run.answer();
		signal?.throwIfAborted();
		this.#refuseWhenClosed();
		this.counts.requests++;
		this.counts.asked += request.expert.length;
		this.counts.retried += answer.retried;
		let unanswered = 0;
		for (const { reason, pairs } of answer.failures) {
			unanswered += pairs;
			this.counts.unanswered.set(reason, (this.counts.unanswered.get(reason) ?? 0) + pairs);
		}
		this.counts.answered += request.expert.length - unanswered;
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

/** One request on its way through plans, dispatches and retries. */
class Attempt {
	readonly #parts: DispatcherParts;
	readonly #rowBytes: number;
	readonly #request: RemoteRequest;
	readonly #signal: AbortSignal | undefined;
	readonly #buffer: AnswerBuffer;
	#giveUpAtMs = 0;

	constructor(parts: DispatcherParts, rowBytes: number, request: RemoteRequest, signal: AbortSignal | undefined) {
		this.#parts = parts;
		this.#rowBytes = rowBytes;
		this.#request = request;
		this.#signal = signal;
		this.#buffer = new AnswerBuffer(request, parts.model.hidden);
	}

	async answer(): Promise<RemoteAnswer> {
		await this.#ask(Array.from(this.#request.expert.keys()), new Set(), "not_holding");
		return this.#buffer.finish();
	}

	/** Asks for the pairs of whoever holds them and was not tried; what is left over fails for `reason`. */
	async #ask(pairs: readonly number[], tried: ReadonlySet<WorkerLink>, reason: string): Promise<void> {
		const { roster, model, wholeRows } = this.#parts;
		const { layer, rowCount, rowIndex, expert } = this.#request;
		const usable = roster.usable.filter((worker) => !tried.has(worker));
		const known = new Map<number, WorkerLink[]>();
		const plan = planDispatches<WorkerLink>({
			rowCount,
			rowIndex,
			expert,
			pairs,
			topK: model.topK,
			rowBytes: this.#rowBytes,
			wholeRows,
			pairsMax: limits.pairs,
			holders: (wanted) => {
				let holders = known.get(wanted);
				if (holders === undefined) {
					holders = usable.filter((worker) => worker.holdings.has(layer, wanted));
					known.set(wanted, holders);
				}
				return holders;
			},
		});
		this.#buffer.fail(plan.unplaced, reason);
		if (tried.size === 0) this.#giveUpAtMs = this.#deadline(plan.dispatches);
		else this.#buffer.retried += pairs.length - plan.unplaced.length;
		await Promise.all(plan.dispatches.map((dispatch) => this.#dispatch(dispatch, tried)));
	}

	async #dispatch(planned: PlannedDispatch<WorkerLink>, tried: ReadonlySet<WorkerLink>): Promise<void> {
		const worker = planned.holder;
		const asked = dispatchMessage(this.#request, planned, {
			hidden: this.#parts.model.hidden,
			q14: worker.hello.engine.class === "canonical-1",
		});
		const { outcome, cancel } = worker.lane.ask({
			message: asked,
			phase: this.#request.phase,
			pairs: planned.pairs.length,
			bytes: bytesBothWays(planned, this.#rowBytes),
			giveUpAtMs: this.#giveUpAtMs,
		});
		this.#signal?.addEventListener("abort", cancel, { once: true });
		const failure = this.#settle(planned, asked, await outcome);
		this.#signal?.removeEventListener("abort", cancel);
		if (failure === null) return;
		if (this.#signal?.aborted || this.#parts.clock.monotonic() >= this.#giveUpAtMs) {
			return this.#buffer.fail(planned.pairs, failure);
		}
		await this.#ask(planned.pairs, new Set([...tried, worker]), failure);
	}

	/** Books and takes an answer; returns why there is none. Written down first, then used. */
	#settle(planned: PlannedDispatch<WorkerLink>, asked: AcceptedDispatch["asked"], outcome: Outcome): string | null {
		const { account, accepted } = this.#parts;
		const worker = planned.holder;
		if (outcome.kind !== "answered") {
			const reason = outcome.kind === "refused" ? outcome.code : outcome.kind;
			if (outcome.id === null) return reason;
			if (outcome.kind === "late") account.unpaid(worker, outcome.id, "late");
			else if (outcome.kind === "cancelled") account.unpaid(worker, outcome.id, "cancelled_late");
			else account.void(worker, outcome.id);
			if (outcome.kind === "late" || outcome.kind === "refused") worker.failed(reason);
			return reason;
		}
		const { id, partials, digest, elapsedMs } = outcome;
		const placed = this.#buffer.place(planned, partials);
		if (placed === "malformed") {
			account.void(worker, id);
			worker.malformed("an answer of another size or type than asked");
			return "malformed";
		}
		if (placed === "non_finite") {
			account.unpaid(worker, id, "non_finite");
			worker.failed("non_finite");
			return "non_finite";
		}
		if (!account.paid(worker, id, planned.pairs.length, digest)) {
			worker.failed("not_written");
			return "not_written";
		}
		this.#buffer.accept(planned, worker.address);
		worker.succeeded(planned.pairs.length, elapsedMs, partials.computeUs);
		accepted?.({ worker, id, asked, vectors: partials.vectors, sequence: this.#request.sequence });
		return null;
	}

	/** The fixed part, and the time the slowest link needs for what it is given and what waits there already. */
	#deadline(dispatches: readonly PlannedDispatch<WorkerLink>[]): number {
		const bytes = new Map<WorkerLink, number>();
		for (const dispatch of dispatches) {
			const { holder } = dispatch;
			bytes.set(holder, (bytes.get(holder) ?? holder.backlogBytes) + bytesBothWays(dispatch, this.#rowBytes));
		}
		const slowestMs = Math.max(0, ...[...bytes].map(([holder, moved]) => moved / holder.bytesPerMs));
		return this.#parts.clock.monotonic() + this.#parts.deadlineMs + slowestMs;
	}
}

function bytesBothWays(dispatch: PlannedDispatch<unknown>, rowBytes: number): number {
	return (dispatch.rows.length + (dispatch.mode === 1 ? dispatch.rows : dispatch.pairs).length) * rowBytes;
}
