import { CompiledQuery, PostgresAdapter, type Transaction } from "kysely";

/** Rows of one statement: a few sizes, so that there are few statements to prepare. */
const chunkRows = [64, 16, 4, 1] as const;

/**
 * Inserts rows that all have the columns of the first. The statements' texts are made once for each table and size: building them
 * for every group anew took longer than running them.
 */
export async function insertRows<Tables>(
	trx: Transaction<Tables>,
	table: keyof Tables & string,
	rows: readonly object[],
): Promise<void> {
	if (rows.length === 0) return;
	const columns = Object.keys(rows[0]!);
	const postgres = trx.getExecutor().adapter instanceof PostgresAdapter;
	let at = 0;
	for (const size of chunkRows) {
		for (; rows.length - at >= size; at += size) {
			const values = rows
				.slice(at, at + size)
				.flatMap((row) => columns.map((column) => (row as Record<string, unknown>)[column]));
			await trx.executeQuery(CompiledQuery.raw(textFor(table, columns, size, postgres), values));
		}
	}
}

const texts = new Map<string, string>();

/** Tables and columns are names in this program, never input. */
function textFor(table: string, columns: readonly string[], rows: number, postgres: boolean): string {
	const key = `${table} ${rows} ${postgres}`;
	const known = texts.get(key);
	if (known !== undefined) return known;
	let parameter = 0;
	const place = () => (postgres ? `$${++parameter}` : "?");
	const row = () => `(${columns.map(place).join(", ")})`;
	const text = `insert into ${table} (${columns.join(", ")}) values ${Array.from({ length: rows }, row).join(", ")}`;
	texts.set(key, text);
	return text;
}
