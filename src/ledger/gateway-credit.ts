import { KvasirError } from "../errors.ts";
import { accountOf, type GatewayTrx, issued, lockLedger, type Movement, post } from "./double-entry.ts";
import { type EntryPage, entryHash, type LedgerEntry } from "./entry.ts";
import type { CreditRow, WalletRow } from "./gateway-schema.ts";
import { insertRows } from "./insert-rows.ts";
import { creditOf } from "./units.ts";

/** How far a gateway has credited its hub's ledger. */
export interface Cursor {
	/** Null before the first page. */
	readonly ledgerId: string | null;
	readonly after: number;
	readonly hash: string;
}

/**
 * Credits a page of the hub's ledger and moves the cursor, all in the caller's transaction. Entries the cursor is already
 * past are skipped, so that a page delivered twice credits once. Throws `diverged` when the page does not continue
 * the chain that was credited, leaving everything as it was.
 */
export async function creditPage(trx: GatewayTrx, page: EntryPage, atMs: number): Promise<Cursor> {
	const ledger = await lockLedger(trx);
	if (ledger.ledger_id !== null && ledger.ledger_id !== page.ledgerId) {
		throw diverged(`the hub's ledger is ${page.ledgerId}, ${ledger.ledger_id} was credited so far`);
	}
	const entries = page.entries.filter((entry) => BigInt(entry.number) > ledger.cursor);
	const hash = followChain(Number(ledger.cursor), ledger.cursor_hash, entries);
	await creditEntries(trx, entries, atMs);
	const after = Number(ledger.cursor) + entries.length;
	await trx
		.updateTable("gateway_ledger")
		.set({
			ledger_id: page.ledgerId,
			cursor: BigInt(after),
			cursor_hash: hash,
			head: BigInt(Math.max(page.head, after)),
			polled_at_ms: BigInt(atMs),
		})
		.where("id", "=", 1n)
		.execute();
	return { ledgerId: page.ledgerId, after, hash };
}

function followChain(cursor: number, cursorHash: string, entries: readonly LedgerEntry[]): string {
	let hash = cursorHash;
	let number = cursor;
	for (const entry of entries) {
		number += 1;
		if (entry.number !== number) throw diverged(`entry ${number} is missing, ${entry.number} came instead`);
		hash = entryHash(hash, entry);
		if (hash !== entry.hash) throw diverged(`entry ${number} does not follow the entry credited before it`);
	}
	return hash;
}

async function creditEntries(trx: GatewayTrx, entries: readonly LedgerEntry[], atMs: number): Promise<void> {
	if (entries.length === 0) return;
	const wallets = await readWallets(trx, [...new Set(entries.map((entry) => entry.payout))]);
	const movements: Movement[] = [];
	const rows: CreditRow[] = [];
	for (const entry of entries) {
		const wallet = wallets.get(entry.payout)!;
		const paidBytes = entry.kind === "receipt" ? entry.paidBytes : 0n;
		const credit = creditOf(paidBytes, entry.rate, wallet.remainder);
		wallet.remainder = credit.remainder;
		wallet.bytes += paidBytes;
		if (paidBytes > 0n) wallet.last_entry = BigInt(entry.number);
		if (credit.nano > 0n) {
			movements.push({
				kind: "credit",
				wallet: entry.payout,
				reference: String(entry.number),
				from: issued,
				to: accountOf(entry.payout, "pending"),
				nano: credit.nano,
			});
		}
		rows.push(creditRow(entry, paidBytes, credit.nano));
	}
	await post(trx, movements, atMs);
	await insertRows(trx, "gateway_credits", rows);
	await writeWallets(trx, [...wallets.values()]);
	const confirmed = entries.filter((entry) => entry.kind === "confirm").map((entry) => entry.receipt);
	if (confirmed.length === 0) return;
	await trx
		.updateTable("gateway_credits")
		.set({ status: "confirmed" })
		.where("receipt", "in", confirmed)
		.where("kind", "=", "receipt")
		.execute();
}

async function readWallets(trx: GatewayTrx, addresses: readonly string[]): Promise<Map<string, WalletRow>> {
	const stored = await trx.selectFrom("gateway_wallets").selectAll().where("address", "in", addresses).execute();
	const wallets = new Map(stored.map((row) => [row.address, row]));
	for (const address of addresses) {
		if (!wallets.has(address)) wallets.set(address, { address, bytes: 0n, remainder: 0n, last_entry: 0n });
	}
	return wallets;
}

async function writeWallets(trx: GatewayTrx, wallets: readonly WalletRow[]): Promise<void> {
	await trx
		.insertInto("gateway_wallets")
		.values([...wallets])
		.onConflict((oc) =>
			oc.column("address").doUpdateSet((eb) => ({
				bytes: eb.ref("excluded.bytes"),
				remainder: eb.ref("excluded.remainder"),
				last_entry: eb.ref("excluded.last_entry"),
			})),
		)
		.execute();
}

function creditRow(entry: LedgerEntry, paidBytes: bigint, nano: bigint): CreditRow {
	return {
		entry: BigInt(entry.number),
		wallet: entry.payout,
		kind: entry.kind,
		receipt: entry.receipt,
		worker: entry.worker,
		backbone: entry.backbone,
		session: entry.session,
		receipt_number: BigInt(entry.receiptNumber),
		served_bytes: entry.servedBytes,
		paid_bytes: paidBytes,
		rate: entry.rate,
		nano,
		status: entry.status,
		reason: entry.reason,
		unpaid: JSON.stringify(entry.unpaid),
		at_ms: BigInt(entry.atMs),
	};
}

function diverged(state: string): KvasirError {
	return new KvasirError("diverged", `Cannot credit the hub's entries: ${state}`, {
		hint: "The hub's ledger was restored or replaced; compare both with: kvasir ledger check",
	});
}
