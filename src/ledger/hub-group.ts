import type { Transaction } from "kysely";
import { entryHash, type LedgerEntry } from "./entry.ts";
import { entryRow } from "./entry-row.ts";
import type { Candidate } from "./hub-examine.ts";
import type { EntryRow, HubTables, ReceiptRow, RelayRow } from "./hub-schema.ts";
import { insertRows } from "./insert-rows.ts";

type Trx = Transaction<HubTables>;

const receiptFacts = [
	"id",
	"session",
	"number",
	"hash",
	"previous",
	"window_from",
	"window_to",
	"status",
	"entry",
] as const;

/** What deciding needs of a stored receipt. */
export type ReceiptFacts = Pick<ReceiptRow, (typeof receiptFacts)[number]>;

/**
 * All that a group of receipts touches, in one transaction: read at its begin, changed in memory, written once at its end.
 * The counter row is locked first, so that groups of several hubs on one server take turns.
 */
export class ReceiptGroup {
	readonly #trx: Trx;
	readonly #atMs: number;
	#head = 0n;
	#headHash = "";
	readonly #receipts = new Map<string, ReceiptFacts>();
	readonly #sessions = new Map<string, HubTables["hub_sessions"]>();
	readonly #relays = new Map<string, RelayRow>();
	readonly #conflicts = new Map<string, bigint>();
	readonly #newEntries: EntryRow[] = [];
	readonly #newReceipts = new Map<string, ReceiptRow>();
	readonly #newConflicts: HubTables["hub_conflicts"][] = [];
	readonly #changedSessions = new Set<string>();
	readonly #changedRelays = new Set<string>();

	private constructor(trx: Trx, atMs: number) {
		this.#trx = trx;
		this.#atMs = atMs;
	}

	/** Locks the ledger and reads what `candidates` touch. */
	static async read(trx: Trx, candidates: readonly Candidate[], atMs: number): Promise<ReceiptGroup> {
		const group = new ReceiptGroup(trx, atMs);
		await group.#read(candidates);
		return group;
	}

	/** The number of the ledger's last entry. */
	get head(): number {
		return Number(this.#head);
	}

	receipt(id: string): ReceiptFacts | undefined {
		return this.#receipts.get(id);
	}

	relay(id: string): RelayRow | undefined {
		return this.#relays.get(id);
	}

	/** The entry of a conflicting receipt that is kept already. */
	conflict(hash: string): bigint | undefined {
		return this.#conflicts.get(hash);
	}

	/** The receipts of the session with the next lower and the next higher number. */
	async neighbours({ session, receipt }: Candidate) {
		const number = BigInt(receipt.number);
		const last = this.#sessions.get(session);
		if (last === undefined) return { lower: null, higher: null };
		// Nearly always: receipts come in their order.
		if (last.number < number) return { lower: last, higher: null };
		const stored = this.#trx.selectFrom("hub_receipts").select(receiptFacts).where("session", "=", session);
		const below = stored.where("number", "<", number).orderBy("number", "desc").limit(1);
		const above = stored.where("number", ">", number).orderBy("number", "asc").limit(1);
		const pending = [...this.#newReceipts.values()].filter((row) => row.session === session);
		const all: ReceiptFacts[] = [...(await below.execute()), ...(await above.execute()), ...pending];
		all.sort((a, b) => Number(a.number - b.number));
		return {
			lower: all.filter((row) => row.number < number).at(-1) ?? null,
			higher: all.find((row) => row.number > number) ?? null,
		};
	}

	/** Adds an entry to the end of the ledger; returns its number. */
	append(c: Candidate, what: Pick<LedgerEntry, "kind" | "status" | "paidBytes" | "reason">): bigint {
		const unpaid: Record<string, number> = {};
		for (const [, reason] of c.receipt.unpaid) unpaid[reason] = (unpaid[reason] ?? 0) + 1;
		const entry: Omit<LedgerEntry, "hash"> = {
			number: Number(this.#head) + 1,
			receipt: c.hash,
			backbone: c.backbone,
			worker: c.worker,
			payout: c.payout,
			session: c.sessionHex,
			receiptNumber: c.receipt.number,
			pairs: c.receipt.pairs,
			servedBytes: c.receipt.servedBytes,
			policy: c.receipt.policy,
			rate: c.rate,
			unpaid,
			atMs: this.#atMs,
			...what,
		};
		this.#head += 1n;
		this.#headHash = entryHash(this.#headHash, entry);
		this.#newEntries.push(entryRow({ ...entry, hash: this.#headHash }));
		return this.#head;
	}

	/** Keeps an accepted receipt and counts its bytes to its relay. */
	addReceipt(row: ReceiptRow, relay: RelayRow | undefined, servedBytes: bigint): void {
		this.#receipts.set(row.id, row);
		this.#newReceipts.set(row.id, row);
		if ((this.#sessions.get(row.session)?.number ?? 0n) < row.number) {
			const { session, number, hash, window_to } = row;
			this.#sessions.set(session, { id: session, number, hash, window_to });
			this.#changedSessions.add(session);
		}
		if (relay === undefined) return;
		this.#relays.set(relay.relay, { ...relay, receipted_bytes: relay.receipted_bytes + servedBytes });
		this.#changedRelays.add(relay.relay);
	}

	/** unconfirmed -> confirmed. */
	async confirm(stored: ReceiptFacts, signature: Uint8Array): Promise<void> {
		const upgrade = { status: "confirmed", countersign: Buffer.from(signature) };
		const pending = this.#newReceipts.get(stored.id);
		if (pending === undefined) {
			await this.#trx.updateTable("hub_receipts").set(upgrade).where("id", "=", stored.id).execute();
		} else this.#newReceipts.set(stored.id, { ...pending, ...upgrade });
		this.#receipts.set(stored.id, { ...stored, status: upgrade.status });
	}

	addConflict(row: HubTables["hub_conflicts"]): void {
		this.#conflicts.set(row.hash, row.entry);
		this.#newConflicts.push(row);
	}

	/** Writes everything that changed. */
	async write(): Promise<void> {
		if (this.#newEntries.length === 0) return;
		const trx = this.#trx;
		const ledger = { head: this.#head, head_hash: this.#headHash };
		const receipts = [...this.#newReceipts.values()];
		await insertRows(trx, "hub_entries", this.#newEntries);
		await trx.updateTable("hub_ledger").set(ledger).where("id", "=", 1n).execute();
		await insertRows(trx, "hub_receipts", receipts);
		await insertRows(trx, "hub_conflicts", this.#newConflicts);
		await this.#writeSessions([...this.#changedSessions].map((id) => this.#sessions.get(id)!));
		await this.#writeRelays([...this.#changedRelays].map((id) => this.#relays.get(id)!));
	}

	async #read(candidates: readonly Candidate[]): Promise<void> {
		const trx = this.#trx;
		const ledger = await trx
			.updateTable("hub_ledger")
			.set((eb) => ({ head: eb.ref("head") }))
			.where("id", "=", 1n)
			.returning(["head", "head_hash"])
			.executeTakeFirstOrThrow();
		this.#head = ledger.head;
		this.#headHash = ledger.head_hash;
		const distinct = (pick: (c: Candidate) => string) => [...new Set(candidates.map(pick))];
		const ids = distinct((c) => c.id);
		const receipts = await trx.selectFrom("hub_receipts").select(receiptFacts).where("id", "in", ids).execute();
		for (const row of receipts) this.#receipts.set(row.id, row);
		const sessions = distinct((c) => c.session);
		for (const row of await trx.selectFrom("hub_sessions").selectAll().where("id", "in", sessions).execute()) {
			this.#sessions.set(row.id, row);
		}
		const relays = distinct((c) => c.receipt.relay);
		for (const row of await trx.selectFrom("hub_relays").selectAll().where("relay", "in", relays).execute()) {
			this.#relays.set(row.relay, row);
		}
		const rivals = candidates.filter((c) => (this.#receipts.get(c.id)?.hash ?? c.hash) !== c.hash).map((c) => c.hash);
		if (rivals.length === 0) return;
		const kept = trx.selectFrom("hub_conflicts").select(["hash", "entry"]).where("hash", "in", rivals);
		for (const row of await kept.execute()) this.#conflicts.set(row.hash, row.entry);
	}

	async #writeSessions(rows: readonly HubTables["hub_sessions"][]): Promise<void> {
		if (rows.length === 0) return;
		await this.#trx
			.insertInto("hub_sessions")
			.values([...rows])
			.onConflict((oc) =>
				oc.column("id").doUpdateSet((eb) => ({
					number: eb.ref("excluded.number"),
					hash: eb.ref("excluded.hash"),
					window_to: eb.ref("excluded.window_to"),
				})),
			)
			.execute();
	}

	async #writeRelays(rows: readonly RelayRow[]): Promise<void> {
		if (rows.length === 0) return;
		await this.#trx
			.insertInto("hub_relays")
			.values([...rows])
			.onConflict((oc) =>
				oc.column("relay").doUpdateSet((eb) => ({ receipted_bytes: eb.ref("excluded.receipted_bytes") })),
			)
			.execute();
	}
}
