import type { Clock } from "../io/clock.ts";
import { equalBytes, type KeyPair } from "../io/crypto.ts";
import { encodeReceipt, type Receipt, receiptHash } from "../ledger/receipt.ts";
import { signReceipt, verifyCountersign } from "../ledger/receipt-signatures.ts";
import type { ReceiptSubmission, WorkerAnswer } from "../ledger/submission.ts";
import { defaultPolicy, servedBytesOf } from "../ledger/units.ts";
import type { Countersign, ModelFacts } from "../protocol/messages.ts";
import { ReceiptWindow, type WindowFigures } from "./receipt-window.ts";
import type { WorkerLink } from "./worker-link.ts";

/** How long a worker has to countersign before its receipt goes out unconfirmed. */
const countersignMs = 10_000;
/** Receipts that a late countersignature may still upgrade. */
const rememberedMax = 16;

export interface SessionReceiptsParts {
	readonly worker: WorkerLink;
	readonly identity: KeyPair;
	readonly model: ModelFacts;
	readonly clock: Clock;
}

/** The receipts of one session: numbered, chained, one in flight at a time. */
export class SessionReceipts {
	readonly window = new ReceiptWindow();
	readonly worker: WorkerLink;
	/** Hex. */
	readonly session: string;
	readonly #parts: SessionReceiptsParts;
	readonly #issued = new Map<number, { receipt: Receipt; submission: ReceiptSubmission }>();
	#number = 0;
	#previous = new Uint8Array(32);
	#waiting: { number: number; resolve: (answer: WorkerAnswer) => void } | null = null;
	#linkEnded = false;

	constructor(parts: SessionReceiptsParts) {
		this.#parts = parts;
		this.worker = parts.worker;
		this.session = Buffer.from(parts.worker.link.session).toString("hex");
		parts.worker.link.ended.then(() => {
			this.#linkEnded = true;
			this.#waiting?.resolve(null);
		});
	}

	/** Makes the next receipt and asks the worker to countersign it; null when there is nothing to receipt. Called one at a time. */
	async issue(ledgerId: Uint8Array): Promise<{ readonly id: string; readonly submission: ReceiptSubmission } | null> {
		const figures = this.window.take();
		if (figures === null) return null;
		const { identity, worker } = this.#parts;
		const receipt = this.#receipt(figures, ledgerId);
		const body = encodeReceipt(receipt);
		const signature = signReceipt(identity, body);
		this.#number = receipt.number;
		this.#previous = new Uint8Array(receiptHash(body));
		let submission: ReceiptSubmission = { body, signature, answer: null };
		this.#remember(receipt, submission);
		worker.link.send({ kind: "receipt", body, signature });
		submission = { ...submission, answer: await this.#countersignature(receipt.number) };
		return { id: this.#idOf(receipt.number), submission };
	}

	/** A countersignature that was waited for is taken by `issue`; one that comes later is returned as an upgrade; a bad one is neither. */
	countersigned({ number, answer }: Countersign): { id: string; submission: ReceiptSubmission } | "taken" | "invalid" {
		const issued = this.#issued.get(number);
		if (issued === undefined || !isAnswerTo(issued.receipt, issued.submission.body, answer)) return "invalid";
		if (this.#waiting?.number === number) {
			this.#waiting.resolve(answer);
			return "taken";
		}
		this.#issued.delete(number);
		return { id: this.#idOf(number), submission: { ...issued.submission, answer } };
	}

	#receipt({ from, to, pairs, unpaid, digest }: WindowFigures, ledgerId: Uint8Array): Receipt {
		const { identity, model, clock, worker } = this.#parts;
		return {
			ledgerId,
			relay: worker.relay,
			backbone: identity.publicKey,
			worker: worker.hello.key,
			payout: worker.hello.payout.wallet,
			payoutSignature: worker.hello.payout.signature,
			session: worker.link.session,
			number: this.#number + 1,
			previous: this.#previous,
			modelId: model.modelId,
			topK: model.topK,
			policy: defaultPolicy.number,
			from,
			to,
			pairs: BigInt(pairs),
			servedBytes: servedBytesOf(BigInt(pairs), model.hidden),
			unpaid,
			digest,
			issuedAtMs: Math.floor(clock.now()),
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

	#idOf(number: number): string {
		return `${this.session}.${number}`;
	}
}

/** A signature has to fit; other figures have to be other figures. */
function isAnswerTo(receipt: Receipt, body: Uint8Array, answer: Countersign["answer"]): boolean {
	if ("signature" in answer) return verifyCountersign(receipt, body, answer.signature);
	return BigInt(answer.pairs) !== receipt.pairs || !equalBytes(answer.digest, receipt.digest);
}
