import type { Kysely } from "kysely";
import type { Clock } from "../io/clock.ts";
import { failpoint } from "../io/failpoint.ts";
import { type Location, type OpenOptions, openDatabase } from "./database.ts";
import { type Balances, balancesOf } from "./double-entry.ts";
import { type EntryPage, genesisHash, type ReceiptStatus } from "./entry.ts";
import { type GatewayCheck, readGatewayCheck } from "./gateway-check.ts";
import {
	confirmClaim,
	exportClaims,
	type Payout,
	payoutOf,
	postClaim,
	releaseClaim,
	type SignedClaim,
} from "./gateway-claims.ts";
import { type Cursor, creditPage } from "./gateway-credit.ts";
import { type CreditRow, type GatewayTables, gatewayMigrations } from "./gateway-schema.ts";
import { migrate } from "./migrate.ts";

/** What a wallet has, as anybody may see it. */
export interface WalletBalance extends Balances {
	readonly address: string;
	/** Bytes credited, ever. */
	readonly servedBytes: bigint;
	/** Millionths of a nano carried into the next credit. */
	readonly remainder: bigint;
	readonly lastReceipt: CreditLine | null;
	/** Claims made so far: the next one's number is one more. */
	readonly claims: number;
	/** Entries of the hub's ledger that this gateway knows of and has not credited. */
	readonly cursorLag: number;
	readonly polledAtMs: number;
	/** Hex; null before the first poll. Claims name it. */
	readonly ledgerId: string | null;
}

/** One receipt of a wallet and what became of it. */
export interface CreditLine {
	readonly entry: number;
	readonly kind: "receipt" | "confirm" | "conflict";
	/** Hex hash. */
	readonly receipt: string;
	readonly worker: string;
	readonly backbone: string;
	readonly session: string;
	readonly receiptNumber: number;
	readonly servedBytes: bigint;
	readonly paidBytes: bigint;
	readonly rate: bigint;
	readonly nano: bigint;
	readonly status: ReceiptStatus;
	readonly reason: string | null;
	/** Dispatches not paid, by reason. */
	readonly unpaid: Readonly<Record<string, number>>;
	readonly atMs: number;
}

/** The gateway's store: what wallets have. Everything is durable before it resolves. */
export interface GatewayStore {
	cursor(): Promise<Cursor>;
	/** Credits a page and moves the cursor, in one transaction. Throws `diverged`. */
	credit(page: EntryPage): Promise<Cursor>;
	balance(address: string): Promise<WalletBalance>;
	/** A wallet's receipts with `entry` above `after`, ascending, at most `limit` (1 to 1000). */
	credits(address: string, after: number, limit: number): Promise<readonly CreditLine[]>;
	/** A wallet's claims, newest first. */
	payouts(address: string): Promise<readonly Payout[]>;
	/** Throws `payment` or `auth`; the same signed claim again gives the same answer. */
	claim(claim: SignedClaim): Promise<Payout>;
	exportPayouts(): Promise<readonly Payout[]>;
	confirmPayout(id: string, reference: string): Promise<Payout>;
	releasePayout(id: string, reason: string): Promise<Payout>;
	/** The figures and differences of section 5's invariant, as far as this store knows them. */
	check(): Promise<GatewayCheck>;
	close(): Promise<void>;
}

export interface GatewayStoreOptions extends OpenOptions {
	readonly clock: Clock;
	/** The least a claim may ask for, nano-KVR. @default 1 */
	readonly claimMinNano?: bigint;
}

/** Opens the gateway's store in this thread; `openGatewayLedger` runs it in a thread of its own. */
export async function openGatewayStore(location: Location, options: GatewayStoreOptions): Promise<GatewayStore> {
	const db = await openDatabase<GatewayTables>(location, options);
	const { kysely } = db;
	await migrate(db, "gateway", gatewayMigrations);
	const empty = { ledger_id: null, cursor: 0n, cursor_hash: genesisHash, head: 0n, polled_at_ms: 0n, transactions: 0n };
	await kysely
		.insertInto("gateway_ledger")
		.values({ id: 1n, ...empty })
		.onConflict((oc) => oc.doNothing())
		.execute();
	const inTransaction = <T>(run: (trx: Parameters<typeof postClaim>[0], atMs: number) => Promise<T>) =>
		kysely.transaction().execute((trx) => run(trx, options.clock.now()));

	return {
		async cursor() {
			const row = await kysely.selectFrom("gateway_ledger").selectAll().executeTakeFirstOrThrow();
			return { ledgerId: row.ledger_id, after: Number(row.cursor), hash: row.cursor_hash };
		},
		async credit(page) {
			const cursor = await inTransaction(async (trx, atMs) => {
				const moved = await creditPage(trx, page, atMs);
				failpoint("gateway.group.before");
				return moved;
			});
			failpoint("gateway.group.after");
			return cursor;
		},
		balance: (address) => readBalance(kysely, address),
		async credits(address, after, limit) {
			const rows = await kysely
				.selectFrom("gateway_credits")
				.selectAll()
				.where("wallet", "=", address)
				.where("entry", ">", BigInt(after))
				.orderBy("entry")
				.limit(Math.min(Math.max(limit, 1), 1000))
				.execute();
			return rows.map(creditLine);
		},
		async payouts(address) {
			const rows = await kysely
				.selectFrom("gateway_claims")
				.selectAll()
				.where("wallet", "=", address)
				.orderBy("number", "desc")
				.limit(1000)
				.execute();
			return rows.map(payoutOf);
		},
		async claim(claim) {
			const payout = await inTransaction(async (trx, atMs) => {
				const posted = await postClaim(trx, claim, options.claimMinNano ?? 1n, atMs);
				failpoint("gateway.claim.before");
				return posted;
			});
			failpoint("gateway.claim.after");
			return payout;
		},
		exportPayouts: () => inTransaction(exportClaims),
		confirmPayout: (id, reference) => inTransaction((trx, atMs) => confirmClaim(trx, id, reference, atMs)),
		releasePayout: (id, reason) => inTransaction((trx, atMs) => releaseClaim(trx, id, reason, atMs)),
		check: () => inTransaction((trx) => readGatewayCheck(trx)),
		close: () => db.close(),
	};
}

async function readBalance(kysely: Kysely<GatewayTables>, address: string): Promise<WalletBalance> {
	const balances = await balancesOf(kysely, address);
	const wallet = await kysely
		.selectFrom("gateway_wallets")
		.selectAll()
		.where("address", "=", address)
		.executeTakeFirst();
	const ledger = await kysely.selectFrom("gateway_ledger").selectAll().executeTakeFirstOrThrow();
	const claim = await kysely
		.selectFrom("gateway_claims")
		.select("number")
		.where("wallet", "=", address)
		.orderBy("number", "desc")
		.limit(1)
		.executeTakeFirst();
	const last =
		wallet === undefined
			? undefined
			: await kysely
					.selectFrom("gateway_credits")
					.selectAll()
					.where("entry", "=", wallet.last_entry)
					.executeTakeFirst();
	return {
		address,
		...balances,
		servedBytes: wallet?.bytes ?? 0n,
		remainder: wallet?.remainder ?? 0n,
		lastReceipt: last === undefined ? null : creditLine(last),
		claims: Number(claim?.number ?? 0n),
		cursorLag: Number(ledger.head - ledger.cursor),
		polledAtMs: Number(ledger.polled_at_ms),
		ledgerId: ledger.ledger_id,
	};
}

function creditLine(row: CreditRow): CreditLine {
	return {
		entry: Number(row.entry),
		kind: row.kind as CreditLine["kind"],
		receipt: row.receipt,
		worker: row.worker,
		backbone: row.backbone,
		session: row.session,
		receiptNumber: Number(row.receipt_number),
		servedBytes: row.served_bytes,
		paidBytes: row.paid_bytes,
		rate: row.rate,
		nano: row.nano,
		status: row.status as ReceiptStatus,
		reason: row.reason,
		unpaid: JSON.parse(row.unpaid) as Record<string, number>,
		atMs: Number(row.at_ms),
	};
}
