import { creditOf, knownPolicies } from "../ledger/units.ts";
import type { ReceiptOutcome } from "./receipt-desk.ts";

/** What a worker did and was promised, over all its sessions; plain numbers for a screen, JSON or metrics. */
export interface TallySnapshot {
	readonly work: {
		readonly dispatches: number;
		readonly pairs: number;
		readonly servedBytes: number;
		/** Milliseconds a dispatch, of the last; null before the first. */
		readonly computeMs: number | null;
	};
	readonly pay: {
		readonly receipts: number;
		readonly disputed: number;
		readonly ignored: number;
		readonly pairs: bigint;
		readonly servedBytes: bigint;
		/** By the policies the receipts name. */
		readonly nano: bigint;
	};
	/** Pairs answered and not paid, by reason. */
	readonly unpaid: Readonly<Record<string, number>>;
	/** Dispatches refused, by code. */
	readonly refused: Readonly<Record<string, number>>;
}

/** Counts, by reason: nothing fails silently. */
export class Tally {
	readonly #work = { dispatches: 0, pairs: 0, servedBytes: 0, computeMs: null as number | null };
	readonly #pay = { receipts: 0, disputed: 0, ignored: 0, pairs: 0n, servedBytes: 0n, nano: 0n };
	readonly #unpaid: Record<string, number> = {};
	readonly #refused: Record<string, number> = {};
	#remainder = 0n;

	answered(pairs: number, hidden: number, computeUs: number): void {
		this.#work.dispatches++;
		this.#work.pairs += pairs;
		this.#work.servedBytes += pairs * hidden * 4;
		this.#work.computeMs = computeUs / 1000;
	}

	refused(code: string): void {
		this.#refused[code] = (this.#refused[code] ?? 0) + 1;
	}

	receipt(outcome: ReceiptOutcome): void {
		if (outcome.kind === "repeated") return;
		if (outcome.kind === "ignored") {
			this.#pay.ignored++;
			return;
		}
		for (const [reason, pairs] of Object.entries(outcome.unpaidPairs)) {
			this.#unpaid[reason] = (this.#unpaid[reason] ?? 0) + pairs;
		}
		if (outcome.kind === "disputed") {
			this.#pay.disputed++;
			return;
		}
		const { pairs, servedBytes, policy } = outcome.receipt;
		const rate = knownPolicies.find(({ number }) => number === policy)?.nanoPerMillionBytes ?? 0n;
		const { nano, remainder } = creditOf(servedBytes, rate, this.#remainder);
		this.#remainder = remainder;
		this.#pay.receipts++;
		this.#pay.pairs += pairs;
		this.#pay.servedBytes += servedBytes;
		this.#pay.nano += nano;
	}

	snapshot(): TallySnapshot {
		return {
			work: { ...this.#work },
			pay: { ...this.#pay },
			unpaid: { ...this.#unpaid },
			refused: { ...this.#refused },
		};
	}
}
