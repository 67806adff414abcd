import { addressOf } from "../../src/io/base58.ts";
import { type KeyPair, keyPairFromSeed, sha256 } from "../../src/io/crypto.ts";
import type { JournalSession } from "../../src/ledger/journal-record.ts";
import { encodeReceipt, type Receipt, receiptHash } from "../../src/ledger/receipt.ts";
import { countersignReceipt, signReceipt } from "../../src/ledger/receipt-signatures.ts";
import type { ReceiptSubmission, WorkerAnswer } from "../../src/ledger/submission.ts";
import { bindPayout } from "../../src/protocol/payout.ts";

/** A key pair that a name always yields. */
export function keyNamed(name: string): KeyPair {
	return keyPairFromSeed(sha256(Buffer.from(name)));
}

export interface TestSession {
	readonly backbone: KeyPair;
	readonly worker: KeyPair;
	readonly payout: Uint8Array;
	readonly session: Uint8Array;
	readonly relay: string;
	readonly ledgerId: string;
}

export interface TestReceipt {
	readonly receipt: Receipt;
	readonly body: Uint8Array;
	readonly hash: Uint8Array;
}

/** A session between named keys; `wallet` names where the worker is paid. */
export function testSession(
	ledgerId: string,
	names: { backbone?: string; worker?: string; wallet?: string; session?: string; relay?: string } = {},
): TestSession {
	const worker = names.worker ?? "worker";
	return {
		backbone: keyNamed(names.backbone ?? "backbone"),
		worker: keyNamed(worker),
		payout: keyNamed(names.wallet ?? `wallet of ${worker}`).publicKey,
		session: sha256(Buffer.from(names.session ?? worker)).subarray(0, 16),
		relay: names.relay ?? "",
		ledgerId,
	};
}

/** A chain of receipts for windows of the given pairs, hidden 3072 unless told otherwise. */
export function receiptChain(
	s: TestSession,
	pairs: readonly number[],
	{ hidden = 3072, ...changes }: Partial<Receipt> & { hidden?: number } = {},
): TestReceipt[] {
	let previous: Uint8Array = new Uint8Array(32);
	return pairs.map((count, i) => {
		const receipt: Receipt = {
			ledgerId: new Uint8Array(Buffer.from(s.ledgerId, "hex")),
			relay: s.relay,
			backbone: s.backbone.publicKey,
			worker: s.worker.publicKey,
			payout: s.payout,
			payoutSignature: new Uint8Array(bindPayout(s.worker, s.payout).signature),
			session: new Uint8Array(s.session),
			number: i + 1,
			previous,
			modelId: new Uint8Array(sha256(Buffer.from("model"))),
			topK: 8,
			policy: 1,
			from: i * 10,
			to: (i + 1) * 10,
			pairs: BigInt(count),
			servedBytes: BigInt(count * hidden * 4),
			unpaid: [],
			digest: new Uint8Array(sha256(Buffer.from(`digest ${i}`))),
			issuedAtMs: 1_700_000_000_000 + i,
			...changes,
		};
		const body = encodeReceipt(receipt);
		previous = new Uint8Array(receiptHash(body));
		return { receipt, body, hash: previous };
	});
}

/** What the backbone posts: with the worker's countersignature unless another answer is given. */
export function submissionOf(s: TestSession, { body }: TestReceipt, answer?: WorkerAnswer): ReceiptSubmission {
	return {
		body,
		signature: signReceipt(s.backbone, body),
		answer: answer === undefined ? { signature: countersignReceipt(s.worker, body) } : answer,
	};
}

/** The submission's origin as the hub's API would state it: authenticated, no live meter. */
export function originOf(s: TestSession, meteredBytes: bigint | null = null) {
	return { backbone: addressOf(s.backbone.publicKey), meteredBytes };
}

/** What a journal begins with for a session, of a model that is `hidden` wide. */
export function journalSessionOf(s: TestSession, hidden: number): JournalSession {
	return {
		kind: "session",
		session: new Uint8Array(s.session),
		worker: new Uint8Array(s.worker.publicKey),
		payout: new Uint8Array(s.payout),
		payoutSignature: new Uint8Array(64).fill(7),
		relay: "relay-1",
		modelId: new Uint8Array(32).fill(9),
		topK: 8,
		hidden,
	};
}
