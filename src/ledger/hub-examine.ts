import { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import { payoutIsBound } from "../protocol/payout.ts";
import type { ReceiptStatus } from "./entry.ts";
import { parseReceipt, type Receipt, receiptHash } from "./receipt.ts";
import { verifyBoth } from "./receipt-signatures.ts";
import type { ReceiptSubmission, ReceiptVerdict, RefusalCode } from "./submission.ts";
import type { Policy } from "./units.ts";

/** A receipt whose signatures and fields are sound, as the posting needs it. */
export interface Candidate {
	readonly receipt: Receipt;
	readonly submission: ReceiptSubmission;
	/** Hex. */
	readonly hash: string;
	readonly previous: string;
	readonly backbone: string;
	readonly worker: string;
	readonly payout: string;
	readonly sessionHex: string;
	/** `backbone.session`, and `backbone.session.number`. */
	readonly session: string;
	readonly id: string;
	readonly rate: bigint;
	readonly status: Exclude<ReceiptStatus, "conflict">;
	readonly paidBytes: bigint;
	/** Why paidBytes differs from servedBytes. */
	readonly reason: string | null;
	/** Bytes from the worker on this relay, where the hub still has the connection. */
	readonly metered: bigint | null;
}

export type Refusal = Extract<ReceiptVerdict, { status: "refused" }>;

export function refusal(code: RefusalCode, text: string): Refusal {
	return { status: "refused", code, text };
}

/** Who submitted a receipt, and what the hub's own meter says now of its relay (null: not connected here). */
export interface SubmissionOrigin {
	/** The address that signed the request: on the hub's list of backbones. */
	readonly backbone: string;
	readonly meteredBytes: bigint | null;
}

/** Checks everything about a submission that needs no database. */
export type Examine = (submission: ReceiptSubmission, origin: SubmissionOrigin) => Promise<Candidate | Refusal>;

/** Payout bindings remembered as proven; a worker's receipts all carry the same. */
const provenMax = 16_384;

/** Checks for one ledger: bytes, signatures, ledger, policy. */
export function createExamine(ledgerId: string, policies: readonly Policy[]): Examine {
	const proven = new Set<string>();
	const addresses = new Map<string, string>();
	/** The same few keys again and again: base58 takes longer than anything else here but the signatures. */
	const addressFor = (key: Uint8Array): string => {
		const text = hex(key);
		const known = addresses.get(text) ?? addressOf(key);
		if (addresses.size >= provenMax) addresses.clear();
		addresses.set(text, known);
		return known;
	};
	const isBound = ({ worker, payout: wallet, payoutSignature: signature }: Receipt): boolean => {
		const binding = Buffer.concat([worker, wallet, signature]).toString("latin1");
		if (proven.has(binding)) return true;
		if (!payoutIsBound(worker, { wallet, signature })) return false;
		if (proven.size >= provenMax) proven.clear();
		proven.add(binding);
		return true;
	};
	return (submission, origin) => examine(submission, origin, { ledgerId, policies, isBound, addressFor });
}

interface ExamineParts {
	readonly ledgerId: string;
	readonly policies: readonly Policy[];
	/** Whether the worker itself bound its pay to the receipt's wallet. */
	isBound(receipt: Receipt): boolean;
	/** Base58. */
	addressFor(key: Uint8Array): string;
}

async function examine(
	submission: ReceiptSubmission,
	origin: SubmissionOrigin,
	{ ledgerId, policies, isBound, addressFor }: ExamineParts,
): Promise<Candidate | Refusal> {
	let receipt: Receipt;
	try {
		receipt = parseReceipt(submission.body);
	} catch (error) {
		if (error instanceof KvasirError) return refusal("bad_receipt", error.message);
		throw error;
	}
	const backbone = addressFor(receipt.backbone);
	if (backbone !== origin.backbone) return refusal("not_listed", `receipt of ${backbone} sent by ${origin.backbone}`);
	if (hex(receipt.ledgerId) !== ledgerId) return refusal("other_ledger", `receipt for ledger ${hex(receipt.ledgerId)}`);
	const policy = policies.find((known) => known.number === receipt.policy);
	if (policy === undefined) return refusal("unknown_policy", `policy ${receipt.policy}`);
	const hash = receiptHash(submission.body);
	const forged = isBound(receipt)
		? await forgedSignature(receipt, hash, submission)
		: "the payout binding is not the worker's";
	if (forged !== null) return refusal("bad_signature", forged);
	const sessionHex = hex(receipt.session);
	const session = `${backbone}.${sessionHex}`;
	const worker = addressFor(receipt.worker);
	const payout = addressFor(receipt.payout);
	return {
		receipt,
		submission,
		hash: hex(hash),
		previous: hex(receipt.previous),
		backbone,
		worker,
		payout,
		sessionHex,
		session,
		id: `${session}.${receipt.number}`,
		rate: policy.nanoPerMillionBytes,
		metered: origin.meteredBytes,
		...judge(receipt, submission, worker === backbone || payout === backbone),
	};
}

async function forgedSignature(
	receipt: Receipt,
	hash: Uint8Array,
	{ signature, answer }: ReceiptSubmission,
): Promise<string | null> {
	const countersign = answer !== null && "signature" in answer ? answer.signature : null;
	const fits = await verifyBoth(receipt, hash, { signature, countersign });
	if (!fits.receipt) return "the backbone's signature does not fit";
	return fits.countersign ? null : "the countersignature is not the worker's";
}

/** What is credited: of two figures the lower, of one's own work nothing. */
function judge(receipt: Receipt, { answer }: ReceiptSubmission, self: boolean) {
	const status = answer === null ? "unconfirmed" : "signature" in answer ? "confirmed" : "disputed";
	if (self) return { status, paidBytes: 0n, reason: "self" } as const;
	if (answer === null || "signature" in answer)
		return { status, paidBytes: receipt.servedBytes, reason: null } as const;
	const agreed = BigInt(answer.pairs) < receipt.pairs ? BigInt(answer.pairs) : receipt.pairs;
	const paidBytes = receipt.pairs === 0n ? 0n : (receipt.servedBytes / receipt.pairs) * agreed;
	return { status, paidBytes, reason: "disputed" } as const;
}

function hex(bytes: Uint8Array): string {
	return Buffer.from(bytes).toString("hex");
}
