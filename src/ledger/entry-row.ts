import type { LedgerEntry } from "./entry.ts";
import type { EntryRow } from "./hub-schema.ts";

/** The row that keeps an entry. */
export function entryRow(e: LedgerEntry): EntryRow {
	return {
		number: BigInt(e.number),
		hash: e.hash,
		kind: e.kind,
		receipt: e.receipt,
		backbone: e.backbone,
		worker: e.worker,
		payout: e.payout,
		session: e.session,
		receipt_number: BigInt(e.receiptNumber),
		pairs: e.pairs,
		served_bytes: e.servedBytes,
		paid_bytes: e.paidBytes,
		policy: BigInt(e.policy),
		rate: e.rate,
		status: e.status,
		reason: e.reason,
		unpaid: JSON.stringify(e.unpaid),
		at_ms: BigInt(e.atMs),
	};
}

/** The entry that a row keeps. */
export function entryOf(row: EntryRow): LedgerEntry {
	return {
		number: Number(row.number),
		hash: row.hash,
		kind: row.kind as LedgerEntry["kind"],
		receipt: row.receipt,
		backbone: row.backbone,
		worker: row.worker,
		payout: row.payout,
		session: row.session,
		receiptNumber: Number(row.receipt_number),
		pairs: row.pairs,
		servedBytes: row.served_bytes,
		paidBytes: row.paid_bytes,
		policy: Number(row.policy),
		rate: row.rate,
		status: row.status as LedgerEntry["status"],
		reason: row.reason,
		unpaid: JSON.parse(row.unpaid) as Record<string, number>,
		atMs: Number(row.at_ms),
	};
}
