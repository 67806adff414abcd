import type { JournalRecord, JournalSession } from "./journal-record.ts";
import { receiptHash, type UnpaidReason } from "./receipt.ts";
import type { ReceiptSubmission } from "./submission.ts";

/** A settled dispatch that is in no receipt yet. */
export type Settled =
	| { readonly id: number; readonly pairs: number; readonly answerHash: Uint8Array }
	| { readonly id: number; readonly reason: UnpaidReason };

/** A receipt that the hub has not acknowledged. */
export interface OpenReceipt {
	readonly number: number;
	readonly to: number;
	readonly submission: ReceiptSubmission;
}

/** What a journal's records add up to: what is still to be receipted, and what is still to be sent. */
export class JournalState {
	#session: JournalSession | null = null;
	/** The newest receipt: number 0, 32 zero bytes and window end 0 before the first. */
	#last = { number: 0, hash: new Uint8Array(32), to: 0 };
	readonly #settled = new Map<number, Settled>();
	readonly #open = new Map<number, OpenReceipt>();

	/** Null until the first record. */
	get session(): JournalSession | null {
		return this.#session;
	}

	get last(): { readonly number: number; readonly hash: Uint8Array; readonly to: number } {
		return this.#last;
	}

	/** Above the last receipt's window, ids ascending. */
	get settled(): readonly Settled[] {
		return [...this.#settled.values()].sort((a, b) => a.id - b.id);
	}

	/** By number. */
	get open(): readonly OpenReceipt[] {
		return [...this.#open.values()];
	}

	apply(record: JournalRecord): void {
		switch (record.kind) {
			case "session":
				this.#session ??= record;
				break;
			case "paid":
			case "unpaid":
				if (record.id > this.#last.to) this.#settled.set(record.id, settledOf(record));
				break;
			case "condemned":
				for (const [id, settled] of this.#settled) {
					if (id >= record.from && "pairs" in settled) this.#settled.set(id, { id, reason: record.reason });
				}
				break;
			case "receipt":
				this.#take(record);
				break;
			case "answer": {
				const open = this.#open.get(record.number);
				if (open !== undefined) {
					this.#open.set(record.number, { ...open, submission: { ...open.submission, answer: record.answer } });
				}
				break;
			}
			case "acknowledged":
				this.#open.delete(record.number);
				break;
			case "mark":
				this.#last = { number: record.number, hash: Uint8Array.from(record.hash), to: record.to };
				break;
		}
	}

	#take({ number, to, body, signature }: Extract<JournalRecord, { kind: "receipt" }>): void {
		this.#last = { number, hash: Uint8Array.from(receiptHash(body)), to };
		this.#open.set(number, { number, to, submission: { body, signature, answer: null } });
		for (const id of this.#settled.keys()) {
			if (id <= to) this.#settled.delete(id);
		}
	}

	/** The fewest records that add up to the same. */
	*records(): Generator<JournalRecord> {
		if (this.#session === null) return;
		yield this.#session;
		for (const { number, to, submission } of this.open) {
			const { body, signature, answer } = submission;
			yield { kind: "receipt", number, to, body, signature };
			if (answer !== null) yield { kind: "answer", number, answer };
		}
		// The newest receipt may be acknowledged while an older one is still open.
		if (this.#last.number > 0) yield { kind: "mark", ...this.#last };
		for (const settled of this.settled) {
			yield "pairs" in settled ? { kind: "paid", ...settled } : { kind: "unpaid", ...settled };
		}
	}
}

function settledOf(record: Extract<JournalRecord, { kind: "paid" | "unpaid" }>): Settled {
	return record.kind === "paid"
		? { id: record.id, pairs: record.pairs, answerHash: record.answerHash }
		: { id: record.id, reason: record.reason };
}
