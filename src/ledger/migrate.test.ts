import { sql } from "kysely";
import { afterAll, describe, expect, it } from "vitest";
import { databasesUnderTest } from "../../test/support/databases.ts";
import { bytesOf, type Database, openDatabase } from "./database.ts";
import { type Migration, migrate } from "./migrate.ts";

const first: Migration = async (db, bytes) => {
	await sql`create table things (id bigint primary key, body ${sql.raw(bytes)} not null)`.execute(db);
};
const second: Migration = async (db) => {
	await sql`alter table things add column name text`.execute(db);
	await sql`update things set name = 'named by the second step'`.execute(db);
};
const broken: Migration = async (db) => {
	await sql`alter table things add column half text`.execute(db);
	await sql`no sql at all`.execute(db);
};

describe.each(databasesUnderTest("migrate"))("migrate() on $name", ({ name, location, skip, clean }) => {
	const databases: Database<unknown>[] = [];
	afterAll(async () => {
		for (const database of databases) await database.close();
		await clean();
	});
	async function open(where: string): Promise<Database<unknown>> {
		const database = await openDatabase<unknown>(where);
		databases.push(database);
		return database;
	}

	it.skipIf(skip)("brings a store with rows in it from each number to the newest, once", async () => {
		const database = await open(await location());
		await migrate(database, "store", [first]);
		await sql`insert into things (id, body) values (${9007199254740993n}, ${Buffer.of(1, 2)})`.execute(database.kysely);
		await migrate(database, "store", [first, second]);
		await migrate(database, "store", [first, second]);
		const { rows } = await sql<{ id: bigint; body: Uint8Array; name: string }>`select * from things`.execute(
			database.kysely,
		);
		expect(rows).toMatchObject([{ id: 9007199254740993n, name: "named by the second step" }]);
		expect(bytesOf(rows[0]!.body)).toEqual(Uint8Array.of(1, 2));
	});

	it.skipIf(skip)("refuses a store that a newer Kvasir wrote", async () => {
		const database = await open(await location());
		await migrate(database, "store", [first, second]);
		await expect(migrate(database, "store", [first])).rejects.toMatchObject({ code: "version" });
	});

	it.skipIf(skip)("leaves a store as it was when a step fails", async () => {
		const database = await open(await location());
		await migrate(database, "store", [first]);
		await expect(migrate(database, "store", [first, broken])).rejects.toThrow();
		await migrate(database, "store", [first, second]);
		await expect(sql`select half from things`.execute(database.kysely)).rejects.toThrow();
	});

	// SQLite's waiting blocks its thread, so that two in this one would wait for each other: hub-ledger.test.ts does it in threads.
	it.skipIf(skip || name === "SQLite")("lets processes that start together take turns", async () => {
		const where = await location();
		const starting = await Promise.all([1, 2, 3].map(() => open(where)));
		await Promise.all(starting.map((database) => migrate(database, "store", [first, second])));
	});

	it.skipIf(skip)("keeps two stores in one database apart", async () => {
		const database = await open(await location());
		await migrate(database, "one", [first]);
		await migrate(database, "two", [async () => {}]);
		await migrate(database, "one", [first, second]);
	});
});
