import { sql } from "kysely";
import type { Migration } from "./migrate.ts";

/** The hub's tables. Keys are base58 text, hashes and sessions hex text, every integer a bigint. */
export interface HubTables {
	/** One row: the counter that numbers entries, updated in the transaction that inserts them. */
	hub_ledger: { id: bigint; ledger_id: string; head: bigint; head_hash: string };
	hub_entries: EntryRow;
	hub_receipts: ReceiptRow;
	/** The highest receipt of each session. */
	hub_sessions: { id: string; number: bigint; hash: string; window_to: bigint };
	/** Receipts that claim a number another receipt has: evidence. */
	hub_conflicts: { hash: string; receipt: string; body: Uint8Array; signature: Uint8Array; entry: bigint };
	hub_relays: RelayRow;
}

export interface EntryRow {
	number: bigint;
	hash: string;
	kind: string;
	receipt: string;
	backbone: string;
	worker: string;
	payout: string;
	session: string;
	receipt_number: bigint;
	pairs: bigint;
	served_bytes: bigint;
	paid_bytes: bigint;
	policy: bigint;
	rate: bigint;
	status: string;
	reason: string | null;
	unpaid: string;
	at_ms: bigint;
}

export interface ReceiptRow {
	/** `backbone.session.number`: unique. */
	id: string;
	/** `backbone.session` */
	session: string;
	number: bigint;
	hash: string;
	previous: string;
	window_from: bigint;
	window_to: bigint;
	status: string;
	entry: bigint;
	body: Uint8Array;
	signature: Uint8Array;
	/** The worker's countersignature; null while there is none. */
	countersign: Uint8Array | null;
	/** A disputing worker's figures, JSON `{pairs, digest}`. */
	disputed: string | null;
}

export interface RelayRow {
	relay: string;
	worker: string;
	bytes_from_worker: bigint;
	bytes_to_worker: bigint;
	/** Served bytes of the receipts accepted for this relay. */
	receipted_bytes: bigint;
	updated_at_ms: bigint;
	/** 1: the counts are its last; 0: it is live, or its hub died. */
	closed: bigint;
}

const first: Migration = async (db, bytes) => {
	const bytesType = sql.raw(bytes);
	await sql`create table hub_ledger (id bigint primary key, ledger_id text not null, head bigint not null, head_hash text not null)`.execute(
		db,
	);
	await sql`create table hub_entries (number bigint primary key, hash text not null, kind text not null, receipt text not null,
		backbone text not null, worker text not null, payout text not null, session text not null, receipt_number bigint not null,
		pairs bigint not null, served_bytes bigint not null, paid_bytes bigint not null, policy bigint not null, rate bigint not null,
		status text not null, reason text, unpaid text not null, at_ms bigint not null)`.execute(db);
	await sql`create table hub_receipts (id text primary key, session text not null, number bigint not null, hash text not null unique,
		previous text not null, window_from bigint not null, window_to bigint not null, status text not null, entry bigint not null,
		body ${bytesType} not null, signature ${bytesType} not null, countersign ${bytesType}, disputed text)`.execute(db);
	await sql`create unique index hub_receipts_order on hub_receipts (session, number)`.execute(db);
	await sql`create table hub_sessions (id text primary key, number bigint not null, hash text not null, window_to bigint not null)`.execute(
		db,
	);
	await sql`create table hub_conflicts (hash text primary key, receipt text not null, body ${bytesType} not null,
		signature ${bytesType} not null, entry bigint not null)`.execute(db);
	await sql`create table hub_relays (relay text primary key, worker text not null, bytes_from_worker bigint not null,
		bytes_to_worker bigint not null, receipted_bytes bigint not null, updated_at_ms bigint not null)`.execute(db);
};

const relayEnds: Migration = async (db) => {
	await sql`alter table hub_relays add column closed bigint not null default 0`.execute(db);
};

/** Numbered from 1; append only. */
export const hubMigrations: readonly Migration[] = [first, relayEnds];
