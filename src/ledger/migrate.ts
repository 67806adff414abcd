import { type QueryExecutorProvider, sql } from "kysely";
import { KvasirError } from "../errors.ts";
import type { Database } from "./database.ts";

/** One numbered step of a schema: `bytes` is the database's name for a column of bytes. */
export type Migration = (db: QueryExecutorProvider, bytes: "blob" | "bytea") => Promise<void>;

/**
 * Brings a store to the newest schema, in one transaction. `migrations[n - 1]` leads to number n; steps once released never change.
 * Throws `version` when the store was written by a newer Kvasir.
 */
export async function migrate<Tables>(
	db: Database<Tables>,
	store: string,
	migrations: readonly Migration[],
): Promise<void> {
	const table = sql.table(`${store}_schema`);
	await prepare(db, table);
	await db.kysely.transaction().execute(async (trx) => {
		// Like every transaction here it begins by writing: SQLite waits for a lock then, but not when a reader becomes a writer.
		// The update takes the row's lock, so that two processes that start together migrate one after the other.
		const found = await sql<{
			number: bigint;
		}>`update ${table} set number = number where id = 1 returning number`.execute(trx);
		const from = Number(found.rows[0]!.number);
		if (from > migrations.length) {
			throw new KvasirError(
				"version",
				`Cannot open the ${store} ledger: its schema is ${from}, this Kvasir knows ${migrations.length}`,
				{
					hint: "Install the newer Kvasir again",
				},
			);
		}
		for (const step of migrations.slice(from)) await step(trx, db.postgres ? "bytea" : "blob");
		await sql`update ${table} set number = ${BigInt(migrations.length)} where id = 1`.execute(trx);
	});
}

/** The row that holds the schema's number. Two processes that start together must not both create it. */
async function prepare<Tables>(db: Database<Tables>, table: ReturnType<typeof sql.table>): Promise<void> {
	const create = async (executor: QueryExecutorProvider) => {
		await sql`create table if not exists ${table} (id bigint primary key, number bigint not null)`.execute(executor);
		await sql`insert into ${table} (id, number) values (1, 0) on conflict do nothing`.execute(executor);
	};
	if (!db.postgres) return create(db.kysely);
	await db.kysely.transaction().execute(async (trx) => {
		await sql`select pg_advisory_xact_lock(hashtext('kvasir'))`.execute(trx);
		await create(trx);
	});
}
