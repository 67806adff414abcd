import { sql } from "kysely";
import type { Clock } from "../io/clock.ts";
import { failpoint } from "../io/failpoint.ts";
import type { Random } from "../io/random.ts";
import { bytesOf, type Location, type OpenOptions, openDatabase } from "./database.ts";
import { type Diverged, type EntryPage, genesisHash } from "./entry.ts";
import { entryOf } from "./entry-row.ts";
import { GroupCommit } from "./group-commit.ts";
import { checkHub } from "./hub-check.ts";
import { type Candidate, createExamine, type SubmissionOrigin } from "./hub-examine.ts";
import { postReceipts } from "./hub-post.ts";
import { type HubTables, hubMigrations } from "./hub-schema.ts";
import { migrate } from "./migrate.ts";
import type { ReceiptSubmission, ReceiptVerdict } from "./submission.ts";
import { knownPolicies, type Policy } from "./units.ts";

/** What a relay carried so far, by the hub's own count. */
export interface RelayCount {
	readonly relay: string;
	/** Base58 key that the gateway admitted. */
	readonly worker: string;
	readonly bytesFromWorker: bigint;
	readonly bytesToWorker: bigint;
	/** It ended, and these are its last counts; a hub that dies leaves relays whose counts are too low. */
	readonly closed: boolean;
}

/** Bytes credited to a wallet at one rate, over a range of entries. */
export interface WalletTotal {
	readonly wallet: string;
	/** Nano-KVR per 1,000,000 bytes. */
	readonly rate: bigint;
	readonly bytes: bigint;
}

/** A receipt that came for a number already taken, with its backbone's signature. */
export interface Conflict {
	readonly entry: number;
	readonly body: Uint8Array;
	readonly signature: Uint8Array;
}

/** The hub's ledger: receipts in, numbered entries out. Everything is durable before it resolves. */
export interface HubStore {
	/** Hex, 16 bytes, made with the store. */
	readonly ledgerId: string;
	acceptReceipt(submission: ReceiptSubmission, origin: SubmissionOrigin): Promise<ReceiptVerdict>;
	/** At most `limit` (1 to 1000) entries after entry `after`, whose hash the reader believes to be `hash`. */
	entriesAfter(after: number, hash: string, limit: number): Promise<EntryPage | Diverged>;
	/** Stores counters (they only grow). */
	recordRelays(counts: readonly RelayCount[]): Promise<void>;
	/** Credited bytes of entries after `after`, up to `upTo` (null: all), by wallet and rate. */
	totals(after: number, upTo: number | null): Promise<readonly WalletTotal[]>;
	/** Receipts that claimed a number another receipt has, the newest 1000: evidence that anybody can check. */
	conflicts(): Promise<readonly Conflict[]>;
	/** Recomputes the chain and examines each receipt and its signatures again (two checks of a signature each); what does not fit, in words. */
	checkChain(): Promise<readonly string[]>;
	close(): Promise<void>;
}

export interface HubStoreOptions extends OpenOptions {
	readonly clock: Clock;
	readonly random: Random;
	readonly policies?: readonly Policy[];
	/** Called after each commit with the number of the last entry. */
	readonly onHead?: (head: number) => void;
}

const groupMax = 256;

/** Opens the hub's store in this thread; `openHubLedger` runs it in a thread of its own. */
export async function openHubStore(location: Location, options: HubStoreOptions): Promise<HubStore> {
	const db = await openDatabase<HubTables>(location, options);
	const { kysely } = db;
	await migrate(db, "hub", hubMigrations);
	const fresh = { id: 1n, ledger_id: hexOf(options.random.bytes(16)), head: 0n, head_hash: genesisHash };
	await kysely
		.insertInto("hub_ledger")
		.values(fresh)
		.onConflict((oc) => oc.doNothing())
		.execute();
	const { ledger_id: ledgerId, head } = await kysely.selectFrom("hub_ledger").selectAll().executeTakeFirstOrThrow();
	options.onHead?.(Number(head));
	const examine = createExamine(ledgerId, options.policies ?? knownPolicies);

	const group = new GroupCommit<Candidate, ReceiptVerdict>(async (candidates) => {
		const atMs = options.clock.now();
		const done = await kysely.transaction().execute(async (trx) => {
			const posted = await postReceipts(trx, candidates, atMs);
			failpoint("hub.group.before");
			return posted;
		});
		failpoint("hub.group.after");
		options.onHead?.(done.head);
		return done.verdicts;
	}, groupMax);

	return {
		ledgerId,
		async acceptReceipt(submission, origin) {
			const examined = await examine(submission, origin);
			return examined.status === "refused" ? examined : group.add(examined);
		},
		async entriesAfter(after, hash, limit) {
			const { head } = await kysely.selectFrom("hub_ledger").select("head").executeTakeFirstOrThrow();
			const known = after === 0 ? genesisHash : await hashAt(after);
			if (known !== hash) return { diverged: { after, head: Number(head), hash: known } };
			const rows = await kysely
				.selectFrom("hub_entries")
				.selectAll()
				.where("number", ">", BigInt(after))
				.orderBy("number")
				.limit(Math.min(Math.max(limit, 1), 1000))
				.execute();
			// Rows may have been posted after the head was read.
			const last = Number(rows.at(-1)?.number ?? 0n);
			return { ledgerId, head: Math.max(last, Number(head)), entries: rows.map(entryOf) };
		},
		recordRelays: (counts) => recordRelays(counts),
		async totals(after, upTo) {
			let query = kysely.selectFrom("hub_entries").where("number", ">", BigInt(after)).where("kind", "=", "receipt");
			if (upTo !== null) query = query.where("number", "<=", BigInt(upTo));
			return query
				.select(["payout as wallet", "rate", sql<bigint>`cast(sum(paid_bytes) as bigint)`.as("bytes")])
				.groupBy(["payout", "rate"])
				.orderBy("payout")
				.execute();
		},
		async conflicts() {
			const rows = await kysely.selectFrom("hub_conflicts").selectAll().orderBy("entry", "desc").limit(1000).execute();
			return rows.map(({ entry, body, signature }) => ({
				entry: Number(entry),
				body: bytesOf(body),
				signature: bytesOf(signature),
			}));
		},
		checkChain: () => checkHub(kysely, examine),
		async close() {
			await group.idle();
			await db.close();
		},
	};

	async function hashAt(number: number): Promise<string | null> {
		const row = await kysely
			.selectFrom("hub_entries")
			.select("hash")
			.where("number", "=", BigInt(number))
			.executeTakeFirst();
		return row?.hash ?? null;
	}

	async function recordRelays(counts: readonly RelayCount[]): Promise<void> {
		const last = new Map(counts.map((count) => [count.relay, count]));
		if (last.size === 0) return;
		failpoint("hub.relays.before");
		const rows = [...last.values()].map((count) => ({
			relay: count.relay,
			worker: count.worker,
			bytes_from_worker: count.bytesFromWorker,
			bytes_to_worker: count.bytesToWorker,
			receipted_bytes: 0n,
			closed: count.closed ? 1n : 0n,
			updated_at_ms: BigInt(options.clock.now()),
		}));
		await kysely
			.insertInto("hub_relays")
			.values(rows)
			.onConflict((oc) =>
				oc.column("relay").doUpdateSet((eb) => ({
					bytes_from_worker: eb.ref("excluded.bytes_from_worker"),
					bytes_to_worker: eb.ref("excluded.bytes_to_worker"),
					updated_at_ms: eb.ref("excluded.updated_at_ms"),
					closed: eb.ref("excluded.closed"),
				})),
			)
			.execute();
		failpoint("hub.relays.after");
	}
}

function hexOf(bytes: Uint8Array): string {
	return Buffer.from(bytes).toString("hex");
}
