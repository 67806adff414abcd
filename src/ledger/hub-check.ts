import type { Kysely } from "kysely";
import { entryHash, genesisHash } from "./entry.ts";
import { entryOf } from "./entry-row.ts";
import type { HubTables } from "./hub-schema.ts";

const pageRows = 1000;
/** Contradictions listed; the first says enough. */
const wrongMax = 100;

/** Recomputes the chain up to the counter and looks for receipts without their entry; what does not fit, in words. */
export async function checkHub(db: Kysely<HubTables>): Promise<readonly string[]> {
	// The counter first: entries that are posted meanwhile lie above it.
	const end = await db.selectFrom("hub_ledger").selectAll().executeTakeFirstOrThrow();
	return [...(await brokenChain(db, end)), ...(await lostReceipts(db))].slice(0, wrongMax);
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
			const follows = entryHash(hash, entryOf(row)) === row.hash;
			if (!follows) wrong.push(`entry ${row.number} does not follow the entry before`);
			hash = row.hash;
			number = row.number;
		}
	}
	if (number !== end.head || hash !== end.head_hash) {
		wrong.push(`the counter is at entry ${end.head}, the chain ends at ${number}`);
	}
	return wrong;
}

async function lostReceipts(db: Kysely<HubTables>): Promise<string[]> {
	const rows = await db
		.selectFrom("hub_receipts")
		.leftJoin("hub_entries", "hub_entries.number", "hub_receipts.entry")
		.select(["hub_receipts.id", "hub_receipts.entry"])
		.where((eb) =>
			eb.or([eb("hub_entries.receipt", "is", null), eb("hub_entries.receipt", "<>", eb.ref("hub_receipts.hash"))]),
		)
		.limit(wrongMax)
		.execute();
	return rows.map(({ id, entry }) => `receipt ${id} is not the one of entry ${entry}`);
}
