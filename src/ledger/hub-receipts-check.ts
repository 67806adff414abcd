import type { Kysely } from "kysely";
import { bytesOf } from "./database.ts";
import type { Examine } from "./hub-examine.ts";
import type { EntryRow, HubTables, ReceiptRow } from "./hub-schema.ts";
import type { WorkerAnswer } from "./submission.ts";

/** Signatures are checked on the thread pool, a page at once. */
const pageRows = 256;

type Kept = Pick<ReceiptRow, "id" | "hash" | "entry" | "body" | "signature" | "countersign" | "disputed"> & {
	/** Null: evidence of a conflict, of which nothing is credited. */
	readonly status: string | null;
};

/**
 * Examines what the hub keeps, receipts and evidence, as if it came now: bytes, signatures, and whether their entries up to
 * `head` say the same. What does not fit, in words, and no more once there are `wrongMax`.
 */
export async function wrongReceipts(
	db: Kysely<HubTables>,
	examine: Examine,
	{ head, wrongMax }: { readonly head: bigint; readonly wrongMax: number },
): Promise<string[]> {
	const wrong: string[] = [];
	for (const pageAfter of [receiptsAfter, conflictsAfter]) {
		let page = await pageAfter(db, "");
		while (page.length > 0 && wrong.length < wrongMax) {
			const entries = await entriesOf(db, page);
			const faults = await Promise.all(page.map((kept) => fault(kept, entries.get(kept.entry), examine)));
			wrong.push(...faults.filter((text) => text !== null));
			const last = page.at(-1)!;
			page = await pageAfter(db, pageAfter === receiptsAfter ? last.id : last.hash);
		}
	}
	return [...wrong, ...(await unequalCounts(db, head))];
}

async function receiptsAfter(db: Kysely<HubTables>, id: string): Promise<Kept[]> {
	return db.selectFrom("hub_receipts").selectAll().where("id", ">", id).orderBy("id").limit(pageRows).execute();
}

async function conflictsAfter(db: Kysely<HubTables>, hash: string): Promise<Kept[]> {
	const all = db.selectFrom("hub_conflicts").selectAll().where("hash", ">", hash);
	const rows = await all.orderBy("hash").limit(pageRows).execute();
	return rows.map(({ receipt, ...row }) => ({ ...row, id: receipt, status: null, countersign: null, disputed: null }));
}

async function entriesOf(db: Kysely<HubTables>, page: readonly Kept[]): Promise<Map<bigint, EntryRow>> {
	const numbers = page.map(({ entry }) => entry);
	const rows = await db.selectFrom("hub_entries").selectAll().where("number", "in", numbers).execute();
	return new Map(rows.map((row) => [row.number, row]));
}

async function fault(kept: Kept, entry: EntryRow | undefined, examine: Examine): Promise<string | null> {
	const name = `${kept.status === null ? "the evidence against receipt" : "receipt"} ${kept.id}`;
	if (entry?.receipt !== kept.hash) return `${name} is not the one of entry ${kept.entry}`;
	const answer = answerOf(kept);
	if (answer === undefined) return `${name}: the dispute cannot be read`;
	const submission = { body: bytesOf(kept.body), signature: bytesOf(kept.signature), answer };
	const found = await examine(submission, { backbone: entry.backbone, meteredBytes: null });
	if (found.status === "refused") return `${name}: ${found.text}`;
	const { receipt } = found;
	const credited = kept.status !== null;
	const pairs: readonly (readonly [field: string, signed: unknown, stored: unknown])[] = [
		["name", found.id, kept.id],
		["hash", found.hash, kept.hash],
		["entry's kind", credited ? "receipt" : "conflict", entry.kind],
		["worker", found.worker, entry.worker],
		["wallet", found.payout, entry.payout],
		["session", found.sessionHex, entry.session],
		["number", BigInt(receipt.number), entry.receipt_number],
		["pairs", receipt.pairs, entry.pairs],
		["served bytes", receipt.servedBytes, entry.served_bytes],
		["paid bytes", credited ? found.paidBytes : 0n, entry.paid_bytes],
		["rate", found.rate, entry.rate],
		["status", credited ? found.status : "conflict", kept.status ?? entry.status],
	];
	const other = pairs.find(([, signed, stored]) => signed !== stored);
	return other === undefined ? null : `${name}: its ${other[0]} is ${other[1]}, the ledger says ${other[2]}`;
}

/** Undefined where the row is damaged. */
function answerOf({ countersign, disputed }: Kept): WorkerAnswer | undefined {
	if (countersign !== null) return { signature: bytesOf(countersign) };
	if (disputed === null) return null;
	try {
		const { pairs, digest } = JSON.parse(disputed) as { pairs: number; digest: string };
		return Number.isSafeInteger(pairs) ? { pairs, digest: new Uint8Array(Buffer.from(digest, "hex")) } : undefined;
	} catch {
		return undefined;
	}
}

/** Every entry of a receipt or a conflict has its bytes. */
async function unequalCounts(db: Kysely<HubTables>, head: bigint): Promise<string[]> {
	const wrong: string[] = [];
	for (const [kind, table] of [
		["receipt", "hub_receipts"],
		["conflict", "hub_conflicts"],
	] as const) {
		const entries = await db
			.selectFrom("hub_entries")
			.select((eb) => eb.fn.countAll<bigint>().as("rows"))
			.where("kind", "=", kind)
			.where("number", "<=", head)
			.executeTakeFirstOrThrow();
		const kept = await db
			.selectFrom(table)
			.select((eb) => eb.fn.countAll<bigint>().as("rows"))
			.where("entry", "<=", head)
			.executeTakeFirstOrThrow();
		if (entries.rows !== kept.rows) wrong.push(`${entries.rows} entries of kind ${kind}, ${kept.rows} kept`);
	}
	return wrong;
}
