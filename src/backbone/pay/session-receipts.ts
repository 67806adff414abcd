import type { Clock } from "../../io/clock.ts";
import { equalBytes, type KeyPair } from "../../io/crypto.ts";
import { failpoint } from "../../io/failpoint.ts";
import type { SessionJournal } from "../../ledger/journal.ts";
import type { JournalRecord, JournalSession } from "../../ledger/journal-record.ts";
import { encodeReceipt, type Receipt, receiptHash, type UnpaidReason } from "../../ledger/receipt.ts";
import { signReceipt, verifyCountersign } from "../../ledger/receipt-signatures.ts";
import type { ReceiptSubmission, WorkerAnswer } from "../../ledger/submission.ts";
import { defaultPolicy, servedBytesOf } from "../../ledger/units.ts";
import type { Link } from "../../protocol/link.ts";
import type { Countersign } from "../../protocol/messages.ts";
import { ReceiptWindow, type WindowFigures } from "./receipt-window.ts";

/** How long a worker has to countersign before its receipt goes out unconfirmed. */
const countersignMs = 10_000;
/** Receipts that a late countersignature may still upgrade. */
const rememberedMax = 16;

export interface SessionReceiptsParts {
	readonly facts: JournalSession;
	/** Null: the session is over, and its journal was left by a process before this one. */
	readonly link: Link | null;
	/** Null: nothing is kept over a restart. */
	readonly journal: SessionJournal | null;
	readonly identity: KeyPair;
	readonly clock: Clock;
}

/** A numbered receipt on its way to the hub. */
export interface IssuedReceipt {
	readonly number: number;
	readonly submission: ReceiptSubmission;
}

/** The account of one session: dispatches settled, receipts numbered, chained, one in flight at a time; each step is in the journal first. */
export class SessionReceipts {
	readonly facts: JournalSession;
	/** Hex. */
	readonly session: string;
	/** No dispatch will follow. */
	over = false;
	readonly #parts: SessionReceiptsParts;
	readonly #window: ReceiptWindow;
	readonly #unacknowledged = new Set<number>();
	readonly #issued = new Map<number, { receipt: Receipt; submission: ReceiptSubmission }>();
	#last: { readonly number: number; readonly hash: Uint8Array };
	#waiting: { readonly number: number; readonly resolve: (answer: WorkerAnswer) => void } | null = null;
	#linkEnded: boolean;

	constructor(parts: SessionReceiptsParts) {
		const { facts, link, journal } = parts;
		this.#parts = parts;
		this.facts = facts;
		this.session = Buffer.from(facts.session).toString("hex");
		this.#last = journal?.state.last ?? { number: 0, hash: new Uint8Array(32) };
		this.#window = new ReceiptWindow(journal?.state.last.to ?? 0);
		this.#linkEnded = link === null;
		for (const settled of journal?.state.settled ?? []) {
			this.#window.sent(settled.id);
			this.#window.settle(
				settled.id,
				"pairs" in settled ? { kind: "paid", ...settled } : { kind: "unpaid", ...settled },
			);
		}
		for (const { number } of journal?.state.open ?? []) this.#unacknowledged.add(number);
		link?.ended.then(() => {
			this.#linkEnded = true;
			this.#waiting?.resolve(null);
		});
	}

	/** Dispatches sent and not settled. */
	get open(): number {
		return this.#window.open;
	}

	/** Over, receipted, and the hub has it all. */
	get finished(): boolean {
		return this.over && this.#window.size === 0 && this.#unacknowledged.size === 0;
	}

	sent(id: number): void {
		this.#window.sent(id);
	}

	/** Throws `disk_full` or `ledger` when it could not be written down; then the dispatch is still open. */
	paid(id: number, pairs: number, answerHash: Uint8Array): void {
		failpoint("backbone.accept.before");
		this.#write({ kind: "paid", id, pairs, answerHash });
		failpoint("backbone.accept.after");
		this.#window.settle(id, { kind: "paid", pairs, answerHash });
	}

	unpaid(id: number, reason: UnpaidReason): void {
		this.#write({ kind: "unpaid", id, reason });
		this.#window.settle(id, { kind: "unpaid", reason });
	}

	/** Refused, or the link ended: nothing to say about it. */
	void(id: number): void {
		this.#window.settle(id, { kind: "void" });
	}

	/** Keeps receipts below `id` until it is released: an audit is under way. */
	hold(id: number): void {
		this.#window.hold(id);
	}

	release(id: number): void {
		this.#window.release(id);
	}

	/** A held audit failed: what is paid above the watermark is not. Throws `disk_full` or `ledger` when only this process knows. */
	condemn(reason: UnpaidReason): void {
		const from = this.#window.condemn(reason);
		if (Number.isFinite(from)) this.#write({ kind: "condemned", reason, from });
	}

	/**
	 * Makes the next receipt and asks the worker to countersign it; null when there is nothing to receipt. Called one at a time.
	 * Throws `disk_full` or `ledger` when it could not be written down; what it would cover waits for the next.
	 */
	async issue(ledgerId: Uint8Array): Promise<IssuedReceipt | null> {
		const figures = this.#window.next();
		if (figures === null) return null;
		const { identity, link } = this.#parts;
		const receipt = this.#receipt(figures, ledgerId);
		const { number } = receipt;
		const body = encodeReceipt(receipt);
		const signature = signReceipt(identity, body);
		failpoint("backbone.issue.before");
		this.#write({ kind: "receipt", number, to: figures.to, body, signature });
		failpoint("backbone.issue.after");
		this.#window.taken(figures);
		this.#last = { number, hash: receiptHash(body) };
		this.#unacknowledged.add(number);
		this.#remember(receipt, { body, signature, answer: null });
		link?.send({ kind: "receipt", body, signature });
		failpoint("backbone.receipt.after");
		const answer = await this.#countersignature(number);
		failpoint("backbone.answer.before");
		try {
			if (answer !== null) this.#write({ kind: "answer", number, answer });
		} catch {
			// After a restart it would go unconfirmed: credited all the same.
		}
		failpoint("backbone.answer.after");
		return { number, submission: { body, signature, answer } };
	}

	/** A countersignature that was waited for is taken by `issue`; one that comes later is returned as an upgrade; a bad one is neither. */
	countersigned({ number, answer }: Countersign): IssuedReceipt | "taken" | "invalid" {
		const issued = this.#issued.get(number);
		if (issued === undefined || !isAnswerTo(issued.receipt, issued.submission.body, answer)) return "invalid";
		this.#issued.delete(number);
		if (this.#waiting?.number === number) {
			this.#waiting.resolve(answer);
			return "taken";
		}
		this.#unacknowledged.add(number);
		return { number, submission: { ...issued.submission, answer } };
	}

	/** The hub has the receipt, durably. */
	acknowledged(number: number): void {
		failpoint("backbone.acknowledged.before");
		if (this.#unacknowledged.delete(number)) this.#write({ kind: "acknowledged", number });
		failpoint("backbone.acknowledged.after");
	}

	/** Closes the journal; it goes when every receipt is acknowledged. */
	close(): void {
		this.#parts.journal?.close();
	}

	#write(record: JournalRecord): void {
		this.#parts.journal?.append(record);
	}

	#receipt({ from, to, pairs, unpaid, digest }: WindowFigures, ledgerId: Uint8Array): Receipt {
		const { kind: _, hidden, ...facts } = this.facts;
		return {
			...facts,
			ledgerId,
			backbone: this.#parts.identity.publicKey,
			number: this.#last.number + 1,
			previous: this.#last.hash,
			policy: defaultPolicy.number,
			from,
			to,
			pairs: BigInt(pairs),
			servedBytes: servedBytesOf(BigInt(pairs), hidden),
			unpaid,
			digest,
			issuedAtMs: Math.floor(this.#parts.clock.now()),
		};
	}

	#countersignature(number: number): Promise<WorkerAnswer> {
		if (this.#linkEnded) return Promise.resolve(null);
		return new Promise((resolve) => {
			const cancelTimer = this.#parts.clock.after(countersignMs, () => this.#waiting?.resolve(null));
			this.#waiting = {
				number,
				resolve: (answer) => {
					cancelTimer();
					this.#waiting = null;
					resolve(answer);
				},
			};
		});
	}

	#remember(receipt: Receipt, submission: ReceiptSubmission): void {
		this.#issued.set(receipt.number, { receipt, submission });
		if (this.#issued.size > rememberedMax) this.#issued.delete(this.#issued.keys().next().value!);
	}
}

/** A signature has to fit; other figures have to be other figures. */
function isAnswerTo(receipt: Receipt, body: Uint8Array, answer: Countersign["answer"]): boolean {
	if ("signature" in answer) return verifyCountersign(receipt, body, answer.signature);
	return BigInt(answer.pairs) !== receipt.pairs || !equalBytes(answer.digest, receipt.digest);
}
