import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { UnpaidReason } from "../ledger/receipt.ts";
import type { ReceiptVerdict } from "../ledger/submission.ts";
import type { Countersign, ModelFacts } from "../protocol/messages.ts";
import type { DispatchAccount } from "./dispatcher.ts";
import type { HubApi, HubFacts } from "./hub-api.ts";
import { ReceiptOutbox } from "./receipt-outbox.ts";
import type { Settlement } from "./receipt-window.ts";
import { SessionReceipts } from "./session-receipts.ts";
import type { WorkerLink } from "./worker-link.ts";

/** A receipt while there is something to receipt. */
const issueEveryMs = 30_000;
/** How often a session whose link ended is looked at until its last dispatches are settled. */
const settleEveryMs = 10;

/** What happens to receipts, for logs, screens and counters. */
export type ReceiptEvent =
	| {
			readonly event: "receipt";
			readonly worker: string;
			readonly status: ReceiptVerdict["status"];
			readonly entry: number;
	  }
	| { readonly event: "disputed"; readonly worker: WorkerLink };

export interface ReceiptBookParts {
	readonly identity: KeyPair;
	readonly model: ModelFacts;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly api: Pick<HubApi, "postReceipt">;
	/** The hub that is paid for; null while it is not known. */
	readonly hub: () => HubFacts | null;
	readonly emit: (event: ReceiptEvent) => void;
}

/** Every session's account, from the accepted answer to the receipt the hub has acknowledged. */
export class ReceiptBook implements DispatchAccount {
	/** Pairs and dispatches by what became of them: paid, and unpaid by reason. */
	readonly counts = { paidPairs: 0, unpaid: new Map<UnpaidReason, number>(), receipts: 0 };
	readonly #parts: ReceiptBookParts;
	readonly #sessions = new Map<WorkerLink, SessionReceipts>();
	readonly #issuing = new Map<WorkerLink, Promise<void>>();
	readonly #outbox: ReceiptOutbox;
	readonly #workerOf = new Map<string, string>();
	#cancelTimer: () => void = () => {};
	#closed = false;

	constructor(parts: ReceiptBookParts) {
		this.#parts = parts;
		const { clock, random, log } = parts;
		this.#outbox = new ReceiptOutbox({
			clock,
			random,
			log,
			post: async (submission) => parts.api.postReceipt(this.#hub(), submission),
			acknowledged: (id, verdict) => {
				const worker = this.#workerOf.get(id) ?? "";
				this.#workerOf.delete(id);
				parts.emit({ event: "receipt", worker, status: verdict.status, entry: verdict.entry });
			},
		});
		this.#schedule();
	}

	/** Receipts that the hub has not acknowledged. */
	get pending(): number {
		return this.#outbox.size;
	}

	/** Opens the account of a session. */
	open(worker: WorkerLink): void {
		const { identity, model, clock } = this.#parts;
		this.#sessions.set(worker, new SessionReceipts({ worker, identity, model, clock }));
		worker.link.ended.then(() => this.#end(worker));
	}

	sent(worker: WorkerLink, id: number): void {
		this.#sessions.get(worker)?.window.sent(id);
	}

	paid(worker: WorkerLink, id: number, pairs: number, answerHash: Uint8Array): void {
		this.counts.paidPairs += pairs;
		this.#settle(worker, id, { kind: "paid", pairs, answerHash });
	}

	unpaid(worker: WorkerLink, id: number, reason: UnpaidReason): void {
		this.counts.unpaid.set(reason, (this.counts.unpaid.get(reason) ?? 0) + 1);
		this.#settle(worker, id, { kind: "unpaid", reason });
	}

	void(worker: WorkerLink, id: number): void {
		this.#settle(worker, id, { kind: "void" });
	}

	/** An audit of this dispatch is under way: no receipt reaches it. */
	hold(worker: WorkerLink, id: number): void {
		this.#sessions.get(worker)?.window.hold(id);
	}

	release(worker: WorkerLink, id: number): void {
		this.#sessions.get(worker)?.window.release(id);
	}

	/** An audit failed: nothing above the last receipt is paid. */
	condemn(worker: WorkerLink): void {
		this.#sessions.get(worker)?.window.condemn("wrong");
	}

	countersigned(worker: WorkerLink, countersign: Countersign): void {
		const result = this.#sessions.get(worker)?.countersigned(countersign) ?? "invalid";
		if (result === "invalid") {
			worker.count("bad_countersign");
			this.#parts.log.warn(
				{ worker: worker.address, number: countersign.number },
				"a countersignature that fits nothing",
			);
		} else if (result !== "taken") this.#post(worker, result);
		if (result !== "invalid" && !("signature" in countersign.answer)) {
			this.#parts.log.error({ worker: worker.address, number: countersign.number }, "the worker disputes a receipt");
			this.#parts.emit({ event: "disputed", worker });
		}
	}

	/** Issues the receipts of one session (drain), or of all. Resolves when they are on their way to the hub. */
	async issue(worker?: WorkerLink): Promise<void> {
		const workers = worker === undefined ? [...this.#sessions.keys()] : [worker];
		await Promise.all(workers.map((one) => this.#issueInTurn(one)));
	}

	/** Issues everything and sends it; true when the hub has it all. */
	async flush(): Promise<boolean> {
		await this.issue();
		return this.#outbox.flush();
	}

	async close(): Promise<void> {
		this.#closed = true;
		this.#cancelTimer();
		await this.#outbox.close();
	}

	#hub(): HubFacts {
		const hub = this.#parts.hub();
		if (hub === null) throw new Error("the hub is not known yet");
		return hub;
	}

	#settle(worker: WorkerLink, id: number, settlement: Settlement): void {
		this.#sessions.get(worker)?.window.settle(id, settlement);
	}

	/** One receipt in flight per session: later calls wait for earlier ones. */
	#issueInTurn(worker: WorkerLink): Promise<void> {
		const turn = (this.#issuing.get(worker) ?? Promise.resolve()).then(() => this.#issueAll(worker));
		this.#issuing.set(worker, turn);
		return turn;
	}

	async #issueAll(worker: WorkerLink): Promise<void> {
		const hub = this.#parts.hub();
		const session = this.#sessions.get(worker);
		if (hub === null || session === undefined) return;
		for (;;) {
			const issued = await session.issue(hub.ledgerId);
			if (issued === null) return;
			this.counts.receipts++;
			this.#post(worker, issued);
		}
	}

	#post(worker: WorkerLink, { id, submission }: { id: string; submission: Parameters<ReceiptOutbox["add"]>[1] }): void {
		this.#workerOf.set(id, worker.address);
		this.#outbox.add(id, submission);
	}

	/** The link is gone: the dispatcher settles what was open within this turn of the event loop, then the last receipts go out. */
	async #end(worker: WorkerLink): Promise<void> {
		const session = this.#sessions.get(worker)!;
		while (session.window.open > 0) await this.#parts.clock.sleep(settleEveryMs);
		await this.#issueInTurn(worker);
		this.#sessions.delete(worker);
		this.#issuing.delete(worker);
	}

	#schedule(): void {
		if (this.#closed) return;
		this.#cancelTimer = this.#parts.clock.after(issueEveryMs, () => {
			void this.issue();
			this.#schedule();
		});
	}
}
