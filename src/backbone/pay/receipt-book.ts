import { KvasirError } from "../../errors.ts";
import { addressOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { journalsIn, SessionJournal } from "../../ledger/journal.ts";
import type { JournalSession } from "../../ledger/journal-record.ts";
import type { UnpaidReason } from "../../ledger/receipt.ts";
import type { ReceiptSubmission, ReceiptVerdict } from "../../ledger/submission.ts";
import type { Countersign, ModelFacts } from "../../protocol/messages.ts";
import type { DispatchAccount } from "../dispatch/dispatcher.ts";
import type { WorkerLink } from "../links/worker-link.ts";
import type { HubApi, HubFacts } from "./hub-api.ts";
import { ReceiptOutbox } from "./receipt-outbox.ts";
import { type IssuedReceipt, SessionReceipts } from "./session-receipts.ts";

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
	/** Where sessions' journals are kept; null: nowhere, and a killed process loses what was not receipted. */
	readonly journals: string | null;
	/** Resolves when a worker's audits are done, the tail's included; called before the last receipts of a session. */
	readonly audited?: (worker: WorkerLink) => Promise<void>;
	readonly emit: (event: ReceiptEvent) => void;
}

/** Every session's account, from the accepted answer to the receipt the hub has acknowledged. */
export class ReceiptBook implements DispatchAccount {
	readonly counts = { paidPairs: 0, unpaid: new Map<UnpaidReason, number>(), receipts: 0 };
	readonly #parts: ReceiptBookParts;
	/** By session, hex. */
	readonly #sessions = new Map<string, SessionReceipts>();
	readonly #issuing = new Map<SessionReceipts, Promise<void>>();
	readonly #outbox: ReceiptOutbox;
	#cancelTimer: () => void = () => {};
	#closed = false;

	constructor(parts: ReceiptBookParts) {
		this.#parts = parts;
		const { clock, random, log } = parts;
		this.#outbox = new ReceiptOutbox({
			clock,
			random,
			log,
			post: (submission) => this.#send(submission),
			acknowledged: (id, verdict) => this.#acknowledged(id, verdict),
		});
		this.#schedule();
	}

	/** Receipts that the hub has not acknowledged. */
	get pending(): number {
		return this.#outbox.size;
	}

	/** Takes up the journals that a process before this one left: their receipts go out as the hub becomes known. */
	async recover(): Promise<void> {
		const { journals: folder, clock, identity, log } = this.#parts;
		if (folder === null) return;
		for (const path of await journalsIn(folder)) {
			const { journal, lostBytes } = await SessionJournal.recover({ folder, clock }, path);
			const facts = journal.state.session;
			log.info({ path, lostBytes, open: journal.state.open.length }, "journal taken up");
			if (facts === null) {
				journal.close();
				continue;
			}
			const session = new SessionReceipts({ facts, link: null, journal, identity, clock });
			this.#sessions.set(session.session, session);
			for (const { number, submission } of journal.state.open) this.#post(session, { number, submission });
			void this.#end(session, null);
		}
	}

	/** Opens the account of a session. */
	open(worker: WorkerLink): void {
		const { identity, model, clock, journals: folder } = this.#parts;
		const { key, payout } = worker.hello;
		const facts: JournalSession = {
			kind: "session",
			session: worker.link.session,
			worker: key,
			payout: payout.wallet,
			payoutSignature: payout.signature,
			relay: worker.relay,
			modelId: model.modelId,
			topK: model.topK,
			hidden: model.hidden,
		};
		const journal = folder === null ? null : SessionJournal.create({ folder, clock }, facts);
		const session = new SessionReceipts({ facts, link: worker.link, journal, identity, clock });
		this.#sessions.set(session.session, session);
		worker.link.ended.then(() => this.#end(session, worker));
	}

	sent(worker: WorkerLink, id: number): void {
		this.#of(worker)?.sent(id);
	}

	/** False when it could not be written down: then the answer may not be used. */
	paid(worker: WorkerLink, id: number, pairs: number, answerHash: Uint8Array): boolean {
		const isWritten = this.#isWritten(worker, id, (session) => session.paid(id, pairs, answerHash));
		if (isWritten) this.counts.paidPairs += pairs;
		return isWritten;
	}

	unpaid(worker: WorkerLink, id: number, reason: UnpaidReason): void {
		this.counts.unpaid.set(reason, (this.counts.unpaid.get(reason) ?? 0) + 1);
		this.#isWritten(worker, id, (session) => session.unpaid(id, reason));
	}

	void(worker: WorkerLink, id: number): void {
		this.#of(worker)?.void(id);
	}

	/** An audit of this dispatch is under way: no receipt reaches it. */
	hold(worker: WorkerLink, id: number): void {
		this.#of(worker)?.hold(id);
	}

	release(worker: WorkerLink, id: number): void {
		this.#of(worker)?.release(id);
	}

	/** A held audit failed: nothing above the watermark is paid. */
	condemn(worker: WorkerLink): void {
		try {
			this.#of(worker)?.condemn("wrong");
		} catch (error) {
			this.#parts.log.error({ error: (error as KvasirError).message }, "a failed audit cannot be written down");
		}
	}

	countersigned(worker: WorkerLink, countersign: Countersign): void {
		const session = this.#of(worker);
		const result = session?.countersigned(countersign) ?? "invalid";
		const { log, emit } = this.#parts;
		if (session === undefined || result === "invalid") {
			worker.count("bad_countersign");
			log.warn({ worker: worker.address, number: countersign.number }, "a countersignature that fits nothing");
			return;
		}
		if (result !== "taken") this.#post(session, result);
		if ("signature" in countersign.answer) return;
		log.error({ worker: worker.address, number: countersign.number }, "the worker disputes a receipt");
		emit({ event: "disputed", worker });
	}

	/** Issues the receipts of one session (drain), or of all. Resolves when they are on their way to the hub. */
	async issue(worker?: WorkerLink): Promise<void> {
		const sessions = worker === undefined ? [...this.#sessions.values()] : [this.#of(worker)];
		await Promise.all(sessions.map((session) => session && this.#issueInTurn(session)));
	}

	/** Issues everything and sends it; true when the hub has it all. */
	async flush(): Promise<boolean> {
		await this.issue();
		return this.#outbox.flush();
	}

	/** Stops sending. What the hub has not acknowledged stays in the journals for the next start. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#cancelTimer();
		await this.#outbox.close();
		for (const session of this.#sessions.values()) session.close();
	}

	#of(worker: WorkerLink): SessionReceipts | undefined {
		return this.#sessions.get(worker.session);
	}

	/** What cannot be written down is void: nothing may follow from it, and no receipt waits for it. */
	#isWritten(worker: WorkerLink, id: number, write: (session: SessionReceipts) => void): boolean {
		const session = this.#of(worker);
		try {
			if (session !== undefined) write(session);
			return true;
		} catch (error) {
			this.#parts.log.error({ error: (error as KvasirError).message }, "an answer cannot be written down");
			session?.void(id);
			return false;
		}
	}

	/** One receipt in flight per session: later calls wait for earlier ones. */
	#issueInTurn(session: SessionReceipts): Promise<void> {
		const turn = (this.#issuing.get(session) ?? Promise.resolve()).then(() => this.#issueAll(session));
		this.#issuing.set(session, turn);
		return turn;
	}

	async #issueAll(session: SessionReceipts): Promise<void> {
		const hub = this.#parts.hub();
		if (hub === null || this.#closed) return;
		try {
			for (;;) {
				const issued = await session.issue(hub.ledgerId);
				if (issued === null) break;
				this.counts.receipts++;
				this.#post(session, issued);
			}
		} catch (error) {
			this.#parts.log.error(
				{ session: session.session, error: (error as Error).message },
				"a receipt cannot be issued",
			);
		}
		this.#retire(session);
	}

	#post(session: SessionReceipts, { number, submission }: IssuedReceipt): void {
		this.#outbox.add(`${session.session}.${number}`, submission);
	}

	#acknowledged(id: string, verdict: Exclude<ReceiptVerdict, { status: "refused" }>): void {
		const [session, number] = id.split(".") as [string, string];
		const account = this.#sessions.get(session);
		if (account === undefined) return;
		account.acknowledged(Number(number));
		this.#retire(account);
		const worker = addressOf(account.facts.worker);
		this.#parts.emit({ event: "receipt", worker, status: verdict.status, entry: verdict.entry });
	}

	async #send(submission: ReceiptSubmission): Promise<ReceiptVerdict> {
		const hub = this.#parts.hub();
		if (hub === null) throw new KvasirError("network", "Cannot post a receipt: the hub was not reached yet");
		return this.#parts.api.postReceipt(hub, submission);
	}

	/** The link is gone: the dispatcher settles what was open within this turn of the event loop, then the last receipts go out. */
	async #end(session: SessionReceipts, worker: WorkerLink | null): Promise<void> {
		while (session.open > 0) await this.#parts.clock.sleep(settleEveryMs);
		if (worker !== null) await this.#parts.audited?.(worker);
		session.over = true;
		await this.#issueInTurn(session);
	}

	/** Forgets a session that is over, once the hub has all its receipts. */
	#retire(session: SessionReceipts): void {
		if (!session.finished) return;
		session.close();
		this.#sessions.delete(session.session);
		this.#issuing.delete(session);
	}

	#schedule(): void {
		if (this.#closed) return;
		this.#cancelTimer = this.#parts.clock.after(issueEveryMs, () => {
			void this.issue();
			this.#schedule();
		});
	}
}
