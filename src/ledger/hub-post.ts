import type { Transaction } from "kysely";
import { entryHash, type LedgerEntry } from "./entry.ts";
import { type Candidate, refusal } from "./hub-examine.ts";
import type { EntryRow, HubTables, ReceiptRow, RelayRow } from "./hub-schema.ts";
import type { ReceiptVerdict } from "./submission.ts";

type Trx = Transaction<HubTables>;
type ReceiptFacts = Pick<
	ReceiptRow,
	"id" | "session" | "number" | "hash" | "previous" | "window_from" | "window_to" | "status" | "entry"
>;

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

/**
 * Posts a group of receipts in one transaction: reads what the group touches, decides one by one in memory,
 * writes each table once. The counter row is locked first, so that groups of several hubs on one server take turns.
 */
export class Posting {
	readonly #trx: Trx;
	readonly #atMs: number;
	#head = 0n;
	#headHash = "";
	#receipts = new Map<string, ReceiptFacts>();
	#sessions = new Map<string, { id: string; number: bigint; hash: string; window_to: bigint }>();
	#relays = new Map<string, RelayRow>();
	#conflicts = new Map<string, bigint>();
	#newEntries: EntryRow[] = [];
	#newReceipts: ReceiptRow[] = [];
	#newConflicts: HubTables["hub_conflicts"][] = [];
	#touchedSessions = new Set<string>();
	#touchedRelays = new Set<string>();

	private constructor(trx: Trx, atMs: number) {
		this.#trx = trx;
		this.#atMs = atMs;
	}

	/** Posts `candidates` in their order; verdicts in the same order, and the number of the ledger's last entry. */
	static async run(
		trx: Trx,
		candidates: readonly Candidate[],
		atMs: number,
	): Promise<{ verdicts: ReceiptVerdict[]; head: number }> {
		const posting = new Posting(trx, atMs);
		await posting.#read(candidates);
		const verdicts: ReceiptVerdict[] = [];
		for (const candidate of candidates) verdicts.push(await posting.#decide(candidate));
		await posting.#write();
		return { verdicts, head: Number(posting.#head) };
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
		const receipts = await trx
			.selectFrom("hub_receipts")
			.select(receiptFacts)
			.where(
				"id",
				"in",
				distinct((c) => c.id),
			)
			.execute();
		for (const row of receipts) this.#receipts.set(row.id, row);
		const sessions = await trx
			.selectFrom("hub_sessions")
			.selectAll()
			.where(
				"id",
				"in",
				distinct((c) => c.session),
			)
			.execute();
		for (const row of sessions) this.#sessions.set(row.id, row);
		const relays = await trx
			.selectFrom("hub_relays")
			.selectAll()
			.where(
				"relay",
				"in",
				distinct((c) => c.receipt.relay),
			)
			.execute();
		for (const row of relays) this.#relays.set(row.relay, row);
		const taken = candidates.filter((c) => (this.#receipts.get(c.id)?.hash ?? c.hash) !== c.hash).map((c) => c.hash);
		if (taken.length === 0) return;
		const conflicts = await trx
			.selectFrom("hub_conflicts")
			.select(["hash", "entry"])
			.where("hash", "in", taken)
			.execute();
		for (const row of conflicts) this.#conflicts.set(row.hash, row.entry);
	}

	async #decide(candidate: Candidate): Promise<ReceiptVerdict> {
		const stored = this.#receipts.get(candidate.id);
		if (stored !== undefined && stored.hash !== candidate.hash) return this.#keepConflict(candidate);
		if (stored !== undefined) return this.#again(candidate, stored);
		const broken = await this.#brokenChain(candidate);
		if (broken !== null) return refusal("broken_chain", broken);
		const relay = this.#relays.get(candidate.receipt.relay);
		const implausible = relay === undefined && candidate.metered === null ? null : implausibility(candidate, relay);
		if (implausible !== null) return refusal("implausible", implausible);
		return this.#accept(candidate, relay);
	}

	#accept(candidate: Candidate, relay: RelayRow | undefined): ReceiptVerdict {
		const metered = relay !== undefined || candidate.metered !== null;
		const reason = candidate.reason ?? (metered ? null : "unmetered");
		const entry = this.#append(candidate, {
			kind: "receipt",
			status: candidate.status,
			paidBytes: candidate.paidBytes,
			reason,
		});
		const { receipt, submission } = candidate;
		const { answer } = submission;
		const row: ReceiptRow = {
			id: candidate.id,
			session: candidate.session,
			number: BigInt(receipt.number),
			hash: candidate.hash,
			previous: candidate.previous,
			window_from: BigInt(receipt.from),
			window_to: BigInt(receipt.to),
			status: candidate.status,
			entry,
			body: Buffer.from(submission.body),
			signature: Buffer.from(submission.signature),
			countersign: answer !== null && "signature" in answer ? Buffer.from(answer.signature) : null,
			disputed:
				answer !== null && "pairs" in answer
					? JSON.stringify({ pairs: answer.pairs, digest: Buffer.from(answer.digest).toString("hex") })
					: null,
		};
		this.#receipts.set(row.id, row);
		this.#newReceipts.push(row);
		if ((this.#sessions.get(row.session)?.number ?? 0n) < row.number) {
			this.#sessions.set(row.session, {
				id: row.session,
				number: row.number,
				hash: row.hash,
				window_to: row.window_to,
			});
			this.#touchedSessions.add(row.session);
		}
		if (relay !== undefined) {
			this.#relays.set(relay.relay, { ...relay, receipted_bytes: relay.receipted_bytes + receipt.servedBytes });
			this.#touchedRelays.add(relay.relay);
		}
		return { status: candidate.status, entry: Number(entry) };
	}

	/** The same receipt again: the same answer; a countersignature that came late upgrades it. */
	async #again(candidate: Candidate, stored: ReceiptFacts): Promise<ReceiptVerdict> {
		const { answer } = candidate.submission;
		if (stored.status !== "unconfirmed" || answer === null || !("signature" in answer)) {
			return { status: stored.status as ReceiptRow["status"] & "confirmed", entry: Number(stored.entry) };
		}
		this.#append(candidate, { kind: "confirm", status: "confirmed", paidBytes: 0n, reason: null });
		const pending = this.#newReceipts.find((row) => row.id === stored.id);
		const upgrade = { status: "confirmed", countersign: Buffer.from(answer.signature) };
		if (pending === undefined)
			await this.#trx.updateTable("hub_receipts").set(upgrade).where("id", "=", stored.id).execute();
		else Object.assign(pending, upgrade);
		this.#receipts.set(stored.id, { ...stored, status: "confirmed" });
		return { status: "confirmed", entry: Number(stored.entry) };
	}

	#keepConflict(candidate: Candidate): ReceiptVerdict {
		const known = this.#conflicts.get(candidate.hash);
		if (known !== undefined) return { status: "conflict", entry: Number(known) };
		const entry = this.#append(candidate, { kind: "conflict", status: "conflict", paidBytes: 0n, reason: "conflict" });
		this.#conflicts.set(candidate.hash, entry);
		this.#newConflicts.push({
			hash: candidate.hash,
			receipt: candidate.id,
			body: Buffer.from(candidate.submission.body),
			signature: Buffer.from(candidate.submission.signature),
			entry,
		});
		return { status: "conflict", entry: Number(entry) };
	}

	/** Null when the receipt fits between its neighbours, whatever the order in which they arrive. */
	async #brokenChain(candidate: Candidate): Promise<string | null> {
		const { receipt, hash, previous } = candidate;
		const { lower, higher } = await this.#neighbours(candidate);
		if (lower !== null) {
			if (BigInt(receipt.from) < lower.window_to) return `window starts at ${receipt.from}, below ${lower.window_to}`;
			if (lower.number === BigInt(receipt.number - 1) && lower.hash !== previous) return "previous is another receipt";
		}
		if (higher !== null) {
			if (BigInt(receipt.to) > higher.window_from) return `window ends at ${receipt.to}, above ${higher.window_from}`;
			if (higher.number === BigInt(receipt.number + 1) && higher.previous !== hash)
				return "the next receipt follows another";
		}
		return null;
	}

	async #neighbours(candidate: Candidate) {
		const number = BigInt(candidate.receipt.number);
		const last = this.#sessions.get(candidate.session);
		if (last === undefined) return { lower: null, higher: null };
		if (last.number < number) return { lower: last, higher: null };
		const stored = this.#trx.selectFrom("hub_receipts").select(receiptFacts).where("session", "=", candidate.session);
		const below = await stored.where("number", "<", number).orderBy("number", "desc").limit(1).executeTakeFirst();
		const above = await stored.where("number", ">", number).orderBy("number", "asc").limit(1).executeTakeFirst();
		const pending = this.#newReceipts.filter((row) => row.session === candidate.session);
		const candidates: ReceiptFacts[] = [...(below ? [below] : []), ...(above ? [above] : []), ...pending];
		const sorted = candidates.sort((a, b) => Number(a.number - b.number));
		return {
			lower: sorted.filter((row) => row.number < number).at(-1) ?? null,
			higher: sorted.find((row) => row.number > number) ?? null,
		};
	}

	#append(c: Candidate, what: Pick<LedgerEntry, "kind" | "status" | "paidBytes" | "reason">): bigint {
		const unpaid: Record<string, number> = {};
		for (const [, reason] of c.receipt.unpaid) unpaid[reason] = (unpaid[reason] ?? 0) + 1;
		const entry: Omit<LedgerEntry, "hash"> = {
			number: Number(this.#head) + 1,
			kind: what.kind,
			receipt: c.hash,
			backbone: c.backbone,
			worker: c.worker,
			payout: c.payout,
			session: c.sessionHex,
			receiptNumber: c.receipt.number,
			pairs: c.receipt.pairs,
			servedBytes: c.receipt.servedBytes,
			paidBytes: what.paidBytes,
			policy: c.receipt.policy,
			rate: c.rate,
			status: what.status,
			reason: what.reason,
			unpaid,
			atMs: this.#atMs,
		};
		this.#head += 1n;
		this.#headHash = entryHash(this.#headHash, entry);
		this.#newEntries.push(entryRow({ ...entry, hash: this.#headHash }));
		return this.#head;
	}

	async #write(): Promise<void> {
		const trx = this.#trx;
		if (this.#newEntries.length === 0) return;
		await trx.insertInto("hub_entries").values(this.#newEntries).execute();
		await trx
			.updateTable("hub_ledger")
			.set({ head: this.#head, head_hash: this.#headHash })
			.where("id", "=", 1n)
			.execute();
		if (this.#newReceipts.length > 0) await trx.insertInto("hub_receipts").values(this.#newReceipts).execute();
		if (this.#newConflicts.length > 0) await trx.insertInto("hub_conflicts").values(this.#newConflicts).execute();
		const sessions = [...this.#touchedSessions].map((id) => this.#sessions.get(id)!);
		if (sessions.length > 0) {
			await trx
				.insertInto("hub_sessions")
				.values(sessions)
				.onConflict((oc) =>
					oc.column("id").doUpdateSet((eb) => ({
						number: eb.ref("excluded.number"),
						hash: eb.ref("excluded.hash"),
						window_to: eb.ref("excluded.window_to"),
					})),
				)
				.execute();
		}
		const relays = [...this.#touchedRelays].map((id) => this.#relays.get(id)!);
		if (relays.length > 0) {
			await trx
				.insertInto("hub_relays")
				.values(relays)
				.onConflict((oc) =>
					oc.column("relay").doUpdateSet((eb) => ({ receipted_bytes: eb.ref("excluded.receipted_bytes") })),
				)
				.execute();
		}
	}
}

/** Served bytes can be at most 2 x topK x what came from the worker (mode 1 sums topK vectors into one, f16 halves it). */
function implausibility(candidate: Candidate, relay: RelayRow | undefined): string | null {
	const { receipt } = candidate;
	if (relay !== undefined && relay.worker !== candidate.worker) return `relay ${receipt.relay} carried ${relay.worker}`;
	const stored = relay?.bytes_from_worker ?? 0n;
	const metered = candidate.metered !== null && candidate.metered > stored ? candidate.metered : stored;
	const served = (relay?.receipted_bytes ?? 0n) + receipt.servedBytes;
	const most = 2n * BigInt(receipt.topK) * metered;
	return served <= most ? null : `${served} served bytes, at most ${most} with ${metered} bytes from the worker`;
}

function entryRow(e: LedgerEntry): EntryRow {
	return {
		number: BigInt(e.number),
		hash: e.hash,
		kind: e.kind,
		receipt: e.receipt,
		backbone: e.backbone,
		worker: e.worker,
		payout: e.payout,
		session: e.session,
		receipt_number: BigInt(e.receiptNumber),
		pairs: e.pairs,
		served_bytes: e.servedBytes,
		paid_bytes: e.paidBytes,
		policy: BigInt(e.policy),
		rate: e.rate,
		status: e.status,
		reason: e.reason,
		unpaid: JSON.stringify(e.unpaid),
		at_ms: BigInt(e.atMs),
	};
}
