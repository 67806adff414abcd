import { addressOf } from "../io/base58.ts";
import type { Random } from "../io/random.ts";
import { parseReceipt, receiptHash } from "../ledger/receipt.ts";
import { knownPolicies } from "../ledger/units.ts";
import { type LocalReceipt, openLocalReceipts } from "../wallet/local-receipts.ts";
import { openWorkerHome, type WorkerHome } from "../worker/home.ts";

/** A worker's home that also keeps each receipt's figures where `wallet balance` finds them without a gateway. */
export async function openPaidHome(home: string, random: Random): Promise<WorkerHome & { close(): Promise<void> }> {
	const workerHome = await openWorkerHome(home, random);
	const receipts = await openLocalReceipts(home);
	return {
		...workerHome,
		async keepReceipt(receipt) {
			await workerHome.keepReceipt(receipt);
			await receipts.append(localReceiptOf(receipt.body, receipt.countersignature !== null));
		},
		close: () => receipts.close(),
	};
}

function localReceiptOf(body: Uint8Array, countersigned: boolean): LocalReceipt {
	const receipt = parseReceipt(body);
	return {
		receipt: hex(receiptHash(body)),
		backbone: addressOf(receipt.backbone),
		worker: addressOf(receipt.worker),
		payout: addressOf(receipt.payout),
		session: hex(receipt.session),
		number: receipt.number,
		pairs: receipt.pairs,
		servedBytes: receipt.servedBytes,
		rate: knownPolicies.find(({ number }) => number === receipt.policy)?.nanoPerMillionBytes ?? 0n,
		countersigned,
		atMs: receipt.issuedAtMs,
	};
}

function hex(bytes: Uint8Array): string {
	return Buffer.from(bytes).toString("hex");
}
