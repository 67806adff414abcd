import { equalBytes, type KeyPair } from "../io/crypto.ts";
import { parseReceipt, type Receipt, receiptHash, type UnpaidReason } from "../ledger/receipt.ts";
import { countersignReceipt, verifyReceipt } from "../ledger/receipt-signatures.ts";
import { servedBytesOf } from "../ledger/units.ts";
import type { Countersign, ReceiptMessage, WelcomeBody } from "../protocol/messages.ts";
import type { ActivityLog } from "./activity-log.ts";

/** What a worker makes of a receipt. */
export type ReceiptOutcome =
	| {
			readonly kind: "agreed" | "disputed";
			readonly reply: Countersign;
			readonly receipt: Receipt;
			readonly body: Uint8Array;
			/** The backbone's. */
			readonly signature: Uint8Array;
			/** Pairs of this worker's answers that are not paid, by reason. */
			readonly unpaidPairs: Readonly<Partial<Record<UnpaidReason, number>>>;
	  }
	/** The receipt before, once more: the same reply, nothing new. */
	| { readonly kind: "repeated"; readonly reply: Countersign }
	/** Not a receipt for this worker and session: no answer. */
	| { readonly kind: "ignored"; readonly reason: string };

export interface ReceiptDeskParts {
	readonly identity: KeyPair;
	readonly payout: Uint8Array;
	readonly backbone: Uint8Array;
	readonly welcome: WelcomeBody;
	readonly log: ActivityLog;
}

/** Checks the receipts of one session against the worker's own log and countersigns them, or answers with its own figures. */
export class ReceiptDesk {
	readonly #parts: ReceiptDeskParts;
	#number = 0;
	#hash: Uint8Array = new Uint8Array(32);
	#to = 0;
	#reply: Countersign | null = null;

	constructor(parts: ReceiptDeskParts) {
		this.#parts = parts;
	}

	examine({ body, signature }: ReceiptMessage): ReceiptOutcome {
		let receipt: Receipt;
		try {
			receipt = parseReceipt(body);
		} catch (error) {
			return { kind: "ignored", reason: (error as Error).message };
		}
		if (!verifyReceipt(receipt, body, signature)) return { kind: "ignored", reason: "signature" };
		const hash = receiptHash(body);
		if (this.#reply !== null && equalBytes(hash, this.#hash)) return { kind: "repeated", reply: this.#reply };
		const foreign = this.#foreign(receipt);
		if (foreign !== null) return { kind: "ignored", reason: foreign };
		return this.#settle(receipt, body.slice(), signature.slice(), hash);
	}

	#settle(receipt: Receipt, body: Uint8Array, signature: Uint8Array, hash: Uint8Array): ReceiptOutcome {
		const { identity, log, welcome } = this.#parts;
		const { from, to, unpaid } = receipt;
		const own = log.figures(from, to, new Set(unpaid.map(([id]) => id)));
		const agreed =
			BigInt(own.pairs) === receipt.pairs &&
			equalBytes(own.digest, receipt.digest) &&
			servedBytesOf(receipt.pairs, welcome.model.hidden) === receipt.servedBytes;
		const unpaidPairs: Partial<Record<UnpaidReason, number>> = {};
		for (const [id, reason] of unpaid) unpaidPairs[reason] = (unpaidPairs[reason] ?? 0) + log.pairsOf(id);
		const answer = agreed ? { signature: countersignReceipt(identity, body) } : own;
		const reply: Countersign = { kind: "countersign", number: receipt.number, answer };
		log.forget(to);
		this.#number = receipt.number;
		this.#hash = hash;
		this.#to = to;
		this.#reply = reply;
		return { kind: agreed ? "agreed" : "disputed", reply, receipt, body, signature, unpaidPairs };
	}

	/** What makes this receipt not the next one of this session; null: it is. */
	#foreign(receipt: Receipt): string | null {
		const { identity, payout, backbone, welcome } = this.#parts;
		if (!equalBytes(receipt.backbone, backbone)) return "backbone";
		if (!equalBytes(receipt.worker, identity.publicKey)) return "worker";
		if (!equalBytes(receipt.payout, payout)) return "payout";
		if (!equalBytes(receipt.session, welcome.session)) return "session";
		if (!equalBytes(receipt.modelId, welcome.model.modelId)) return "modelId";
		if (receipt.topK !== welcome.model.topK) return "topK";
		if (receipt.number !== this.#number + 1) return `number ${receipt.number} after ${this.#number}`;
		if (!equalBytes(receipt.previous, this.#hash)) return "previous";
		if (receipt.from < this.#to) return `from ${receipt.from} below ${this.#to}`;
		return null;
	}
}
