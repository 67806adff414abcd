import { type Kysely, type Transaction as KyselyTransaction, sql } from "kysely";
import type { GatewayTables } from "./gateway-schema.ts";
import { insertRows } from "./insert-rows.ts";

export type GatewayTrx = KyselyTransaction<GatewayTables>;

/** The account every credit comes from: its balance is minus all that was ever credited. */
export const issued = "issued";

/** A wallet's three accounts. */
export const accountOf = (wallet: string, state: "pending" | "claimed" | "paid") => `${state}:${wallet}`;

/** One movement of nano-KVR between two accounts; (kind, reference) is unique, so that nothing moves twice. */
export interface Movement {
	readonly kind: "credit" | "claim" | "paid" | "failed";
	readonly wallet: string;
	readonly reference: string;
	readonly from: string;
	readonly to: string;
	/** Above zero. */
	readonly nano: bigint;
}

/**
 * Records movements: a transaction each, with two postings that sum to zero, and the accounts' balances.
 * The caller holds the lock on gateway_ledger's row.
 */
export async function post(trx: GatewayTrx, movements: readonly Movement[], atMs: number): Promise<void> {
	if (movements.length === 0) return;
	const count = BigInt(movements.length);
	const counter = await trx
		.updateTable("gateway_ledger")
		.set((eb) => ({ transactions: eb("transactions", "+", count) }))
		.where("id", "=", 1n)
		.returning("transactions")
		.executeTakeFirstOrThrow();
	const first = counter.transactions - count + 1n;
	const changes = new Map<string, bigint>();
	const add = (account: string, nano: bigint) => changes.set(account, (changes.get(account) ?? 0n) + nano);
	const transactions = movements.map((m, i) => ({
		id: first + BigInt(i),
		kind: m.kind,
		wallet: m.wallet,
		reference: m.reference,
		at_ms: BigInt(atMs),
	}));
	const postings = movements.flatMap((m, i) => {
		const id = first + BigInt(i);
		add(m.from, -m.nano);
		add(m.to, m.nano);
		return [
			{ transaction_id: id, account: m.from, nano: -m.nano },
			{ transaction_id: id, account: m.to, nano: m.nano },
		];
	});
	await insertRows(trx, "gateway_transactions", transactions);
	await insertRows(trx, "gateway_postings", postings);
	const balances = [...changes].map(([id, nano]) => ({ id, nano }));
	await trx
		.insertInto("gateway_accounts")
		.values(balances)
		.onConflict((oc) => oc.column("id").doUpdateSet({ nano: sql`gateway_accounts.nano + excluded.nano` }))
		.execute();
}

/** A wallet's balances, nano-KVR. */
export interface Balances {
	readonly pending: bigint;
	readonly claimed: bigint;
	readonly paid: bigint;
}

export async function balancesOf(db: Kysely<GatewayTables>, wallet: string): Promise<Balances> {
	const ids = [accountOf(wallet, "pending"), accountOf(wallet, "claimed"), accountOf(wallet, "paid")] as const;
	const rows = await db.selectFrom("gateway_accounts").selectAll().where("id", "in", ids).execute();
	const nano = (id: string) => rows.find((row) => row.id === id)?.nano ?? 0n;
	return { pending: nano(ids[0]), claimed: nano(ids[1]), paid: nano(ids[2]) };
}

/** Takes the one row's lock: transactions of several gateways on one server take turns. */
export async function lockLedger(trx: GatewayTrx) {
	return trx
		.updateTable("gateway_ledger")
		.set((eb) => ({ cursor: eb.ref("cursor") }))
		.where("id", "=", 1n)
		.returning(["ledger_id", "cursor", "cursor_hash", "head", "polled_at_ms"])
		.executeTakeFirstOrThrow();
}
