import { addressOf } from "../../io/base58.ts";
import { parseReceipt, receiptHash } from "../../ledger/receipt.ts";
import { knownPolicies } from "../../ledger/units.ts";
import type { LocalReceipt } from "../../wallet/local-receipts.ts";
import type { SignedReceipt } from "../../worker/home.ts";

/** A receipt as a worker keeps it: its figures, for `wallet balance` without a gateway, and what proves them. */
export function localReceiptOf({ body, signature, countersignature }: SignedReceipt): LocalReceipt {
	const receipt = parseReceipt(body);
	return {
		receipt: text(receiptHash(body), "hex"),
		backbone: addressOf(receipt.backbone),
		worker: addressOf(receipt.worker),
		payout: addressOf(receipt.payout),
		session: text(receipt.session, "hex"),
		number: receipt.number,
		pairs: receipt.pairs,
		servedBytes: receipt.servedBytes,
		rate: knownPolicies.find(({ number }) => number === receipt.policy)?.nanoPerMillionBytes ?? 0n,
		countersigned: countersignature !== null,
		atMs: receipt.issuedAtMs,
		signed: {
			body: text(body, "base64"),
			signature: text(signature, "base64"),
			countersignature: countersignature && text(countersignature, "base64"),
		},
	};
}

function text(bytes: Uint8Array, encoding: "hex" | "base64"): string {
	return Buffer.from(bytes).toString(encoding);
}
