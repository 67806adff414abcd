import { emptyDigest, extendDigest } from "../../ledger/digest-chain.ts";
import { receiptLimits, type UnpaidReason } from "../../ledger/receipt.ts";

/** What became of a dispatch. `void`: refused, or its link ended; nothing to say about it. */
export type Settlement =
	| { readonly kind: "paid"; readonly pairs: number; readonly answerHash: Uint8Array }
	| { readonly kind: "unpaid"; readonly reason: UnpaidReason }
	| { readonly kind: "void" };

/** The figures of one receipt: the window (from, to] and what is paid in it. */
export interface WindowFigures {
	readonly from: number;
	readonly to: number;
	readonly pairs: number;
	readonly unpaid: readonly (readonly [id: number, reason: UnpaidReason])[];
	readonly digest: Uint8Array;
}

/** The dispatches of one session that no receipt covers yet, in ascending ids; a window reaches to the last id below which all are settled and audited. */
export class ReceiptWindow {
	/** Null: sent, not settled. Insertion order is the order of ids. */
	readonly #dispatches = new Map<number, Settlement | null>();
	readonly #held = new Set<number>();
	#from: number;
	#open = 0;

	/** @param from the end of the window before */
	constructor(from = 0) {
		this.#from = from;
	}

	/** Dispatches in no receipt yet. */
	get size(): number {
		return this.#dispatches.size;
	}

	/** Dispatches sent and not settled. */
	get open(): number {
		return this.#open;
	}

	sent(id: number): void {
		this.#dispatches.set(id, null);
		this.#open++;
	}

	/** Unknown ids, and those already settled, are left as they are. */
	settle(id: number, settlement: Settlement): void {
		if (this.#dispatches.get(id) !== null) return;
		this.#dispatches.set(id, settlement);
		this.#open--;
	}

	/** Keeps the window below `id` until it is released: an audit is under way. The lowest held id ends what is audited: the watermark lies below it. */
	hold(id: number): void {
		this.#held.add(id);
	}

	release(id: number): void {
		this.#held.delete(id);
	}

	/** A held audit failed: all that is paid above the watermark becomes unpaid. Returns the lowest id it may concern. */
	condemn(reason: UnpaidReason): number {
		const from = Math.min(...this.#held);
		for (const [id, settlement] of this.#dispatches) {
			if (id >= from && settlement?.kind === "paid") this.#dispatches.set(id, { kind: "unpaid", reason });
		}
		this.#held.clear();
		return from;
	}

	/** The next window, which stays until it is `taken`; null when nothing in it is paid or unpaid (refused dispatches need no receipt). */
	next(): WindowFigures | null {
		let digest: Uint8Array = emptyDigest;
		let pairs = 0;
		let to = this.#from;
		const unpaid: [number, UnpaidReason][] = [];
		for (const [id, settlement] of this.#dispatches) {
			if (settlement === null || this.#held.has(id)) break;
			if (unpaid.length === receiptLimits.unpaid || id - this.#from > receiptLimits.windowIds) break;
			if (settlement.kind === "paid") {
				pairs += settlement.pairs;
				digest = extendDigest(digest, id, settlement.pairs, settlement.answerHash);
			} else if (settlement.kind === "unpaid") unpaid.push([id, settlement.reason]);
			to = id;
		}
		const figures = { from: this.#from, to, pairs, unpaid, digest };
		if (pairs > 0 || unpaid.length > 0) return figures;
		this.taken(figures);
		return null;
	}

	/** A receipt of this window is written down: what it covers leaves. */
	taken({ to }: Pick<WindowFigures, "to">): void {
		for (const id of this.#dispatches.keys()) {
			if (id > to) break;
			this.#dispatches.delete(id);
		}
		this.#from = to;
	}
}
