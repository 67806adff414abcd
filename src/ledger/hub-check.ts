import type { Kysely } from "kysely";
import { entryHash, genesisHash } from "./entry.ts";
import { entryOf } from "./entry-row.ts";
import type { Examine } from "./hub-examine.ts";
import { wrongReceipts } from "./hub-receipts-check.ts";
import type { EntryRow, HubTables } from "./hub-schema.ts";

const pageRows = 1000;
/** Contradictions listed; the first says enough. */
const wrongMax = 100;

/** Recomputes the chain up to the counter and examines each receipt and its signatures again; what does not fit, in words. */
export async function checkHub(db: Kysely<HubTables>, examine: Examine): Promise<readonly string[]> {
	// The counter first: entries that are posted meanwhile lie above it.
	const end = await db.selectFrom("hub_ledger").selectAll().executeTakeFirstOrThrow();
	const receipts = { head: end.head, wrongMax };
	return [...(await brokenChain(db, end)), ...(await wrongReceipts(db, examine, receipts))].slice(0, wrongMax);
}

async function brokenChain(db: Kysely<HubTables>, end: HubTables["hub_ledger"]): Promise<string[]> {
	const wrong: string[] = [];
	let hash = genesisHash;
	let number = 0n;
	while (number < end.head && wrong.length < wrongMax) {
		const rows = await db
			.selectFrom("hub_entries")
			.selectAll()
			.where("number", ">", number)
			.where("number", "<=", end.head)
			.orderBy("number")
			.limit(pageRows)
			.execute();
		if (rows.length === 0) break;
		for (const row of rows) {
			if (row.number !== number + 1n) wrong.push(`entry ${number + 1n} is missing`);
			if (!follows(row, hash)) wrong.push(`entry ${row.number} does not follow the entry before`);
			hash = row.hash;
			number = row.number;
		}
	}
	if (number !== end.head || hash !== end.head_hash) {
		wrong.push(`the counter is at entry ${end.head}, the chain ends at ${number}`);
	}
	return wrong;
}

function follows(row: EntryRow, before: string): boolean {
	try {
		return entryHash(before, entryOf(row)) === row.hash;
	} catch (error) {
		// A damaged row: its JSON cannot be read.
		if (error instanceof SyntaxError) return false;
		throw error;
	}
}
