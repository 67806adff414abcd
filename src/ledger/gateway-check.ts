import { sql } from "kysely";
import { type Balances, balancesOf, type GatewayTrx, issued } from "./double-entry.ts";
import type { Cursor } from "./gateway-credit.ts";
import type { WalletTotal } from "./hub-store.ts";

/** What the gateway's store holds of one wallet. */
export interface WalletFigures extends Balances {
	readonly wallet: string;
	readonly bytes: bigint;
	/** Millionths of a nano. */
	readonly remainder: bigint;
}

/** The gateway's side of section 5's invariant. */
export interface GatewayCheck {
	readonly cursor: Cursor;
	readonly wallets: readonly WalletFigures[];
	/** Credited bytes by wallet and rate, from the credit rows. */
	readonly credited: readonly WalletTotal[];
	/** What contradicts itself inside the store, in words; empty when double entry holds. */
	readonly wrong: readonly string[];
}

/** Reads one consistent picture of the store and checks its double entry. */
export async function readGatewayCheck(trx: GatewayTrx): Promise<GatewayCheck> {
	const ledger = await trx.selectFrom("gateway_ledger").selectAll().executeTakeFirstOrThrow();
	const rows = await trx.selectFrom("gateway_wallets").selectAll().orderBy("address").execute();
	const wallets: WalletFigures[] = [];
	for (const { address, bytes, remainder } of rows) {
		wallets.push({ wallet: address, bytes, remainder, ...(await balancesOf(trx, address)) });
	}
	const credited = await trx
		.selectFrom("gateway_credits")
		.where("kind", "=", "receipt")
		.select(["wallet", "rate", sql<bigint>`cast(sum(paid_bytes) as bigint)`.as("bytes")])
		.groupBy(["wallet", "rate"])
		.orderBy("wallet")
		.execute();
	return {
		cursor: { ledgerId: ledger.ledger_id, after: Number(ledger.cursor), hash: ledger.cursor_hash },
		wallets,
		credited,
		wrong: [...(await unbalanced(trx)), ...(await misstated(trx)), ...(await openClaims(trx))],
	};
}

async function unbalanced(trx: GatewayTrx): Promise<string[]> {
	const rows = await trx
		.selectFrom("gateway_postings")
		.select(["transaction_id", sql<bigint>`cast(sum(nano) as bigint)`.as("nano")])
		.groupBy("transaction_id")
		.having(sql<boolean>`sum(nano) <> 0`)
		.limit(100)
		.execute();
	return rows.map((row) => `transaction ${row.transaction_id} sums to ${row.nano}, not 0`);
}

async function misstated(trx: GatewayTrx): Promise<string[]> {
	const accounts = await trx.selectFrom("gateway_accounts").selectAll().execute();
	const sums = await trx
		.selectFrom("gateway_postings")
		.select(["account", sql<bigint>`cast(sum(nano) as bigint)`.as("nano")])
		.groupBy("account")
		.execute();
	const posted = new Map(sums.map((row) => [row.account, row.nano]));
	const wrong: string[] = [];
	for (const { id, nano } of accounts) {
		const sum = posted.get(id) ?? 0n;
		if (sum !== nano) wrong.push(`account ${id} says ${nano}, its postings sum to ${sum}`);
		if (nano < 0n && id !== issued) wrong.push(`account ${id} is below zero: ${nano}`);
		posted.delete(id);
	}
	for (const [account, nano] of posted) wrong.push(`account ${account} is missing, its postings sum to ${nano}`);
	return wrong;
}

/** What is claimed is exactly the claims that are not settled. */
async function openClaims(trx: GatewayTrx): Promise<string[]> {
	const claims = await trx
		.selectFrom("gateway_claims")
		.where("state", "=", "claimed")
		.select(["wallet", sql<bigint>`cast(sum(nano) as bigint)`.as("nano")])
		.groupBy("wallet")
		.execute();
	const wrong: string[] = [];
	for (const { wallet, nano } of claims) {
		const { claimed } = await balancesOf(trx, wallet);
		if (claimed !== nano) wrong.push(`wallet ${wallet} has ${claimed} claimed, its open claims sum to ${nano}`);
	}
	return wrong;
}
