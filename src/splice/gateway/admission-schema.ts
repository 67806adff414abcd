import { sql } from "kysely";
import type { Migration } from "../../ledger/migrate.ts";

/** Tables of the gateway's admission, beside those of its wallets. Keys are base58 text, every integer a bigint. */
export interface AdmissionTables {
	/** Keys that may join under `allow-list` and `invite`. */
	admission_allowed: {
		key: string;
		/** The invite that let it in; null: listed by the operator. */
		invite: string | null;
		at_ms: bigint;
	};
	admission_bans: { key: string; reason: string; at_ms: bigint };
	admission_invites: InviteRow;
}

export interface InviteRow {
	/** Names it in lists; no secret. */
	id: string;
	/** Hex SHA-256 of the code: the code itself is shown once and not kept. */
	code_hash: string;
	note: string;
	created_at_ms: bigint;
	expires_at_ms: bigint;
	/** The key that spent it. */
	used_by: string | null;
	used_at_ms: bigint | null;
	revoked_at_ms: bigint | null;
}

const first: Migration = async (db) => {
	await sql`create table admission_allowed (key text primary key, invite text, at_ms bigint not null)`.execute(db);
	await sql`create table admission_bans (key text primary key, reason text not null, at_ms bigint not null)`.execute(
		db,
	);
	await sql`create table admission_invites (id text primary key, code_hash text not null unique, note text not null,
		created_at_ms bigint not null, expires_at_ms bigint not null, used_by text, used_at_ms bigint, revoked_at_ms bigint)`.execute(
		db,
	);
};

/** Numbered from 1; append only. */
export const admissionMigrations: readonly Migration[] = [first];
