import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { Kysely, PostgresDialect, type SqliteDatabase, SqliteDialect, type SqliteStatement, sql } from "kysely";
import { KvasirError } from "../errors.ts";
import { systemError, systemErrorWords } from "../io/system-error.ts";

/** Where a store lives: a file, `:memory:`, or `postgres://...`. */
export type Location = string;

/** An open database. All integers come back as bigint, from SQLite and from PostgreSQL. */
export interface Database<Tables> {
	readonly kysely: Kysely<Tables>;
	readonly postgres: boolean;
	close(): Promise<void>;
}

/** True for a PostgreSQL URL. */
function isPostgres(location: Location): boolean {
	return /^postgres(ql)?:\/\//.test(location);
}

/** A location as it may be shown: a URL without its password. */
function shownLocation(location: Location): string {
	return isPostgres(location) ? location.replace(/\/\/[^@/]*@/, "//").replace(/\?.*$/, "") : location;
}

export interface OpenOptions {
	/** Throw `file_missing` instead of creating an empty store: for commands that only look at one. @default false */
	readonly mustExist?: boolean;
}

/** Opens or creates a database. Throws `ledger` when it cannot, `disk_full` where that is why. */
export async function openDatabase<Tables>(
	location: Location,
	{ mustExist = false }: OpenOptions = {},
): Promise<Database<Tables>> {
	if (mustExist && !isPostgres(location) && !existsSync(location)) {
		throw new KvasirError("file_missing", `Cannot open the ledger at ${location}: there is none`, {
			hint: "Name it with --hub-db or --gateway-db, or start the hub or gateway that makes it",
		});
	}
	try {
		return isPostgres(location) ? await openPostgres<Tables>(location) : await openSqlite<Tables>(location);
	} catch (cause) {
		const refused = isPostgres(location) ? null : await refusedBeside(location);
		const full = refused?.code === "disk_full" || /\bfull\b/.test(messageOf(cause));
		const state = refused === null ? messageOf(cause) : systemErrorWords(refused.cause);
		throw new KvasirError(
			full ? "disk_full" : "ledger",
			`Cannot open the ledger at ${shownLocation(location)}: ${state}`,
			{ hint: refused?.hint ?? "Check KVASIR_HUB_DB or KVASIR_GATEWAY_DB, and who may write there" },
		);
	}
}

/** What the system refuses where SQLite keeps its log beside the file: SQLite itself says "disk I/O error" of a full disk. */
async function refusedBeside(path: string): Promise<KvasirError | null> {
	const probe = `${path}-probe`;
	try {
		await writeFile(probe, new Uint8Array(65_536), { flush: true, mode: 0o600 });
		return null;
	} catch (cause) {
		return systemError(cause);
	} finally {
		await rm(probe, { force: true }).catch(() => {});
	}
}

/** A column of bytes as it is read: libsql gives an ArrayBuffer, pg a Buffer. */
export function bytesOf(column: Uint8Array | ArrayBuffer): Uint8Array {
	return new Uint8Array(column);
}

async function openSqlite<Tables>(path: string): Promise<Database<Tables>> {
	const { default: Libsql } = await import("libsql");
	const file = new Libsql(path);
	file.defaultSafeIntegers(true);
	// FULL: a commit that was answered survives a power cut. The store commits in groups, so this costs one fsync a group.
	for (const pragma of ["busy_timeout=10000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"]) {
		file.prepare(`PRAGMA ${pragma}`).all();
	}
	const kysely = new Kysely<Tables>({ dialect: new SqliteDialect({ database: preparedOnce(file as never) }) });
	return { kysely, postgres: false, close: () => kysely.destroy() };
}

/** Statements kept prepared. */
const statementsMax = 128;

/** A database that prepares each text once: preparing took a tenth of what a receipt costs. */
function preparedOnce(file: SqliteDatabase): SqliteDatabase {
	const statements = new Map<string, SqliteStatement>();
	return {
		prepare(text) {
			const known = statements.get(text);
			if (known !== undefined) return known;
			const statement = file.prepare(text);
			if (statements.size >= statementsMax) statements.clear();
			statements.set(text, statement);
			return statement;
		},
		close: () => file.close(),
	};
}

const bigintOid = 20;
const numericOid = 1700;

async function openPostgres<Tables>(url: string): Promise<Database<Tables>> {
	const { default: pg } = await import("pg");
	const pool = new pg.Pool({
		connectionString: url,
		max: 4,
		connectionTimeoutMillis: 10_000,
		types: {
			getTypeParser: (oid: number, format?: "text" | "binary") =>
				oid === bigintOid || oid === numericOid ? BigInt : pg.types.getTypeParser(oid, format as "text"),
		},
	});
	// A connection that breaks while idle is replaced by the pool; without a listener it would end the process.
	pool.on("error", () => {});
	const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
	try {
		await sql`select 1`.execute(kysely);
	} catch (error) {
		await kysely.destroy();
		throw error;
	}
	return { kysely, postgres: true, close: () => kysely.destroy() };
}

function messageOf(cause: unknown): string {
	return cause instanceof Error ? cause.message : String(cause);
}
