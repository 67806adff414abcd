import { sql } from "kysely";
import type { Migration } from "./migrate.ts";

/** The gateway's tables. Addresses are base58 text, hashes hex text, every integer a bigint, every amount nano-KVR. */
export interface GatewayTables {
	/** One row: how far this gateway has credited which hub's ledger, and the counter that numbers transactions. */
	gateway_ledger: {
		id: bigint;
		/** Null until the first page. */
		ledger_id: string | null;
		cursor: bigint;
		cursor_hash: string;
		/** The hub's last entry, as of polled_at_ms. */
		head: bigint;
		polled_at_ms: bigint;
		transactions: bigint;
	};
	gateway_wallets: WalletRow;
	/** Every entry that concerned a wallet: what was credited, or why not. */
	gateway_credits: CreditRow;
	gateway_accounts: { id: string; nano: bigint };
	gateway_transactions: { id: bigint; kind: string; wallet: string; reference: string; at_ms: bigint };
	gateway_postings: { transaction_id: bigint; account: string; nano: bigint };
	gateway_claims: ClaimRow;
}

export interface WalletRow {
	address: string;
	/** Credited bytes, ever. */
	bytes: bigint;
	/** Millionths of a nano not credited yet. */
	remainder: bigint;
	/** Entry of the newest credit. */
	last_entry: bigint;
}

export interface CreditRow {
	entry: bigint;
	wallet: string;
	kind: string;
	receipt: string;
	worker: string;
	backbone: string;
	session: string;
	receipt_number: bigint;
	served_bytes: bigint;
	paid_bytes: bigint;
	rate: bigint;
	nano: bigint;
	status: string;
	reason: string | null;
	unpaid: string;
	at_ms: bigint;
}

export interface ClaimRow {
	/** `wallet.number` */
	id: string;
	wallet: string;
	number: bigint;
	nano: bigint;
	/** Where to pay it. */
	address: string;
	signature: string;
	/** claimed, paid or failed. */
	state: string;
	/** Of the transaction that paid it. */
	reference: string | null;
	/** Why it failed. */
	reason: string | null;
	claimed_at_ms: bigint;
	/** Null until it left in an export. */
	exported_at_ms: bigint | null;
	settled_at_ms: bigint | null;
}

const first: Migration = async (db) => {
	await sql`create table gateway_ledger (id bigint primary key, ledger_id text, cursor bigint not null, cursor_hash text not null,
		head bigint not null, polled_at_ms bigint not null, transactions bigint not null)`.execute(db);
	await sql`create table gateway_wallets (address text primary key, bytes bigint not null, remainder bigint not null,
		last_entry bigint not null)`.execute(db);
	await sql`create table gateway_credits (entry bigint primary key, wallet text not null, kind text not null, receipt text not null,
		worker text not null, backbone text not null, session text not null, receipt_number bigint not null,
		served_bytes bigint not null, paid_bytes bigint not null, rate bigint not null, nano bigint not null,
		status text not null, reason text, unpaid text not null, at_ms bigint not null)`.execute(db);
	await sql`create index gateway_credits_wallet on gateway_credits (wallet, entry)`.execute(db);
	await sql`create index gateway_credits_receipt on gateway_credits (receipt)`.execute(db);
	await sql`create table gateway_accounts (id text primary key, nano bigint not null)`.execute(db);
	await sql`create table gateway_transactions (id bigint primary key, kind text not null, wallet text not null,
		reference text not null, at_ms bigint not null, unique (kind, reference))`.execute(db);
	await sql`create index gateway_transactions_wallet on gateway_transactions (wallet, id)`.execute(db);
	await sql`create table gateway_postings (transaction_id bigint not null references gateway_transactions (id),
		account text not null, nano bigint not null, primary key (transaction_id, account))`.execute(db);
	await sql`create table gateway_claims (id text primary key, wallet text not null, number bigint not null, nano bigint not null,
		address text not null, signature text not null, state text not null, reference text, reason text,
		claimed_at_ms bigint not null, exported_at_ms bigint, settled_at_ms bigint)`.execute(db);
	await sql`create unique index gateway_claims_order on gateway_claims (wallet, number)`.execute(db);
};

/** Numbered from 1; append only. */
export const gatewayMigrations: readonly Migration[] = [first];
