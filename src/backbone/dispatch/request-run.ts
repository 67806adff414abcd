import { limits } from "../../protocol/limits.ts";
import type { WorkerLink } from "../links/worker-link.ts";
import type { Asked } from "../pay/compare-answer.ts";
import type { RemoteAnswer, RemoteRequest } from "../remote.ts";
import { AnswerBuffer } from "./answer-buffer.ts";
import { dispatchMessage } from "./dispatch-rows.ts";
import type { DispatchCounts, DispatcherParts } from "./dispatcher.ts";
import { type HedgeBudget, rivalFor, slowAfterMs } from "./hedge.ts";
import type { Outcome } from "./lane.ts";
import { type PlannedDispatch, planDispatches } from "./plan.ts";

type Planned = PlannedDispatch<WorkerLink>;

interface RunParts extends DispatcherParts {
	readonly hedges: HedgeBudget;
	readonly counts: Pick<DispatchCounts, "messages" | "tensorBytes">;
}

/** One request on its way through plans, dispatches, hedges and retries, until every pair is answered or given up. */
export class RequestRun {
	readonly #parts: RunParts;
	readonly #rowBytes: number;
	readonly #request: RemoteRequest;
	readonly #signal: AbortSignal | undefined;
	readonly #buffer: AnswerBuffer;
	#giveUpAtMs = 0;

	constructor(parts: RunParts, request: RemoteRequest, signal: AbortSignal | undefined) {
		this.#parts = parts;
		this.#rowBytes = parts.model.hidden * 4;
		this.#request = request;
		this.#signal = signal;
		this.#buffer = new AnswerBuffer(request, parts.model.hidden);
	}

	async answer(): Promise<RemoteAnswer> {
		await this.#ask([...this.#request.expert.keys()], new Set(), "not_holding");
		return this.#buffer.finish();
	}

	/** Asks for the pairs of whoever holds them and was not tried; what is left over fails for `reason`. */
	async #ask(pairs: readonly number[], tried: ReadonlySet<WorkerLink>, reason: string): Promise<void> {
		const { roster, model, wholeRows } = this.#parts;
		const { layer, rowCount, rowIndex, expert } = this.#request;
		const usable = roster.usable.filter((worker) => !tried.has(worker));
		const known = new Map<number, WorkerLink[]>();
		const plan = planDispatches<WorkerLink>({
			...{ rowCount, rowIndex, expert, pairs, wholeRows },
			topK: model.topK,
			rowBytes: this.#rowBytes,
			pairsMax: limits.pairs,
			holders(wanted) {
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

	/** One message, a second worker beside the first where that is slow, and others after both failed. */
	async #dispatch(planned: Planned, tried: ReadonlySet<WorkerLink>): Promise<void> {
		const triedNow = new Set([...tried, planned.holder]);
		const settled = new AbortController();
		const answered = new AbortController();
		const won = (failure: string | null) => {
			if (failure === null) answered.abort();
			return failure;
		};
		const [failure, hedged] = await Promise.all([
			this.#send(planned, answered.signal)
				.then(won)
				.finally(() => settled.abort()),
			this.#hedge(planned, triedNow, { settled: settled.signal, answered: answered.signal }).then(won),
		]);
		if (failure === "cancelled" && hedged === null) planned.holder.failed("overtaken");
		if (failure === null || hedged === null) return;
		if (this.#signal?.aborted || this.#parts.clock.monotonic() >= this.#giveUpAtMs) {
			this.#buffer.fail(planned.pairs, failure);
		} else await this.#ask(planned.pairs, triedNow, failure);
	}

	/** Waits until the first worker is slow, then asks another that holds the same experts. Null: that one answered. */
	async #hedge(
		planned: Planned,
		tried: Set<WorkerLink>,
		{ settled, answered }: { settled: AbortSignal; answered: AbortSignal },
	): Promise<string | null> {
		const { clock, roster, hedges, hedge = true } = this.#parts;
		if (!hedge || this.#request.phase === "prefill") return "not_hedged";
		const slowMs = slowAfterMs(planned.holder);
		const isSlow = await clock.sleep(slowMs, settled).then(
			() => true,
			() => false,
		);
		if (!isSlow) return "not_hedged";
		const others = roster.usable.filter((worker) => !tried.has(worker));
		const rival = rivalFor(planned, this.#request, others);
		if (rival === undefined || !hedges.spend(planned.pairs.length)) return "not_hedged";
		tried.add(rival);
		this.#buffer.retried += planned.pairs.length;
		return this.#send({ ...planned, holder: rival }, answered);
	}

	/** Sends a message and waits for its end, or until nobody needs it any more; returns why there is no answer. What ends later is booked all the same. */
	async #send(planned: Planned, cancelled: AbortSignal): Promise<string | null> {
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
		this.#countSent(asked);
		let waitedFor = true;
		let leave!: (reason: string) => void;
		const left = new Promise<string>((resolve) => {
			leave = resolve;
		});
		const stop = () => {
			if (!cancel()) return;
			waitedFor = false;
			leave("cancelled");
		};
		cancelled.addEventListener("abort", stop, { once: true });
		this.#signal?.addEventListener("abort", stop, { once: true });
		const booked = outcome.then((end) => this.#settle(planned, asked, end, waitedFor));
		const failure = await Promise.race([booked, left]);
		this.#signal?.removeEventListener("abort", stop);
		return failure;
	}

	#countSent({ mode, dtype, rows }: Asked): void {
		const { messages, tensorBytes } = this.#parts.counts;
		messages.sent += 1;
		messages.wholeRows += mode;
		messages.q14 += dtype === "q14" ? 1 : 0;
		tensorBytes.sent += rows.length;
	}

	/** Books an outcome; returns why it is no answer. @param waitedFor false: it was cancelled */
	#settle(planned: Planned, asked: Asked, outcome: Outcome, waitedFor: boolean): string | null {
		if (outcome.kind === "answered") return this.#take(planned, asked, outcome, waitedFor);
		const { account } = this.#parts;
		const worker = planned.holder;
		const reason = outcome.kind === "refused" ? outcome.code : outcome.kind;
		if (outcome.id === null) return reason;
		if (outcome.kind === "late") account.unpaid(worker, outcome.id, "late");
		else if (outcome.kind === "cancelled") account.unpaid(worker, outcome.id, "cancelled_late");
		else account.void(worker, outcome.id);
		if (outcome.kind === "refused" && !waitedFor) worker.count(reason);
		else if (outcome.kind === "late" || outcome.kind === "refused") worker.failed(reason);
		return reason;
	}

	/** Checks an answer, writes it down, and only then uses it where it is still needed; returns why it cannot be used. */
	#take(
		planned: Planned,
		asked: Asked,
		{ id, partials, digest, elapsedMs }: Extract<Outcome, { kind: "answered" }>,
		waitedFor: boolean,
	): string | null {
		const { account, accepted, counts } = this.#parts;
		const worker = planned.holder;
		counts.tensorBytes.received += partials.vectors.length;
		if (worker.quarantined) {
			// Asked before an audit of this worker failed: what it says now is neither used nor paid.
			account.unpaid(worker, id, "quarantined");
			return "quarantined";
		}
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
		const used = this.#buffer.accept(planned, worker.address);
		worker.succeeded(planned.pairs.length, elapsedMs, partials.computeUs, waitedFor);
		accepted?.({ worker, id, asked, vectors: partials.vectors, sequence: used ? this.#request.sequence : [] });
		return null;
	}

	/** The fixed part, and the time the slowest link needs for what it is given and what waits there already. */
	#deadline(dispatches: readonly Planned[]): number {
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
