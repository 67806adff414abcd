import { z } from "zod";
import { KvasirError } from "../errors.ts";
import { sha256 } from "../io/crypto.ts";

/** What became of a receipt at the hub. `conflict`: another receipt has its number; kept as evidence, not credited. */
const receiptStatuses = ["unconfirmed", "confirmed", "disputed", "conflict"] as const;
export type ReceiptStatus = (typeof receiptStatuses)[number];

/**
 * One line of the hub's ledger, numbered in commit order and hash-chained. Kinds: `receipt` (credits paidBytes),
 * `confirm` (a later countersignature of a receipt already credited), `conflict` (evidence; credits nothing).
 */
export interface LedgerEntry {
	/** 1, 2, ... without gaps. */
	readonly number: number;
	/** Hex SHA-256 over the hash before and this entry's fields. */
	readonly hash: string;
	readonly kind: "receipt" | "confirm" | "conflict";
	/** Hex hash of the receipt's body. */
	readonly receipt: string;
	/** Base58 keys. */
	readonly backbone: string;
	readonly worker: string;
	readonly payout: string;
	/** Hex. */
	readonly session: string;
	readonly receiptNumber: number;
	readonly pairs: bigint;
	/** What the receipt says, and what is credited of it. */
	readonly servedBytes: bigint;
	readonly paidBytes: bigint;
	readonly policy: number;
	/** The policy's nano-KVR per 1,000,000 bytes. */
	readonly rate: bigint;
	readonly status: ReceiptStatus;
	/** Why paidBytes differs from servedBytes, or `unmetered`; null: nothing to say. */
	readonly reason: string | null;
	/** Dispatches of the window that were not paid, by reason. */
	readonly unpaid: Readonly<Record<string, number>>;
	/** The hub's wall clock when it posted the entry. */
	readonly atMs: number;
}

/** The hash "before" entry 1. */
export const genesisHash = "0".repeat(64);

const label = Buffer.from("kvasir/1 entry");

/** The hash of an entry: SHA-256(label || hash before || JSON array of its fields). */
export function entryHash(previous: string, e: Omit<LedgerEntry, "hash">): string {
	const fields = [
		e.number,
		e.kind,
		e.receipt,
		e.backbone,
		e.worker,
		e.payout,
		e.session,
		e.receiptNumber,
		String(e.pairs),
		String(e.servedBytes),
		String(e.paidBytes),
		e.policy,
		String(e.rate),
		e.status,
		e.reason,
		Object.entries(e.unpaid).sort(([a], [b]) => (a < b ? -1 : 1)),
		e.atMs,
	];
	const digest = sha256(label, Buffer.from(previous, "hex"), Buffer.from(JSON.stringify(fields)));
	return Buffer.from(digest).toString("hex");
}

/** A page of a hub's ledger, after a cursor. */
export interface EntryPage {
	/** Hex, 16 bytes: a gateway follows one ledger for ever. */
	readonly ledgerId: string;
	/** The hub's last entry: how far behind the reader is. */
	readonly head: number;
	readonly entries: readonly LedgerEntry[];
}

/** The hub holds another hash at the cursor (or no such entry): its history is not the one that was credited. */
export interface Diverged {
	readonly diverged: { readonly after: number; readonly head: number; readonly hash: string | null };
}

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
const count = z.number().int().nonnegative();
const amount = z
	.string()
	.regex(/^[0-9]{1,19}$/)
	.transform(BigInt);
const address = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);

const entrySchema = z.strictObject({
	number: count,
	hash: hex(32),
	kind: z.enum(["receipt", "confirm", "conflict"]),
	receipt: hex(32),
	backbone: address,
	worker: address,
	payout: address,
	session: hex(16),
	receiptNumber: count,
	pairs: amount,
	servedBytes: amount,
	paidBytes: amount,
	policy: count,
	rate: amount,
	status: z.enum(receiptStatuses),
	reason: z.string().max(32).nullable(),
	unpaid: z.record(z.string().max(32), count),
	atMs: count,
});

const pageSchema = z.strictObject({ ledgerId: hex(16), head: count, entries: z.array(entrySchema).max(1000) });

/** The JSON of a page: the same fields, bigint as decimal strings. Body of `200` of GET /ledger/entries. */
export function pageJson(page: EntryPage): unknown {
	const entries = page.entries.map((e) => ({
		...e,
		pairs: String(e.pairs),
		servedBytes: String(e.servedBytes),
		paidBytes: String(e.paidBytes),
		rate: String(e.rate),
	}));
	return { ...page, entries };
}

/** Reads a hub's page strictly. Throws `malformed`. */
export function parsePage(json: unknown): EntryPage {
	const parsed = pageSchema.safeParse(json);
	if (!parsed.success) {
		const issue = parsed.error.issues[0];
		throw new KvasirError("malformed", `Cannot read the hub's ledger page: ${issue?.path.join(".")} ${issue?.message}`);
	}
	return parsed.data;
}
