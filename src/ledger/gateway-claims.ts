import { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import { verifySignature } from "../io/crypto.ts";
import { type Claim, claimText } from "../protocol/claim-text.ts";
import { accountOf, balancesOf, type GatewayTrx, lockLedger, post } from "./double-entry.ts";
import type { ClaimRow } from "./gateway-schema.ts";

/** A claim with the wallet's signature over `claimText`. */
export interface SignedClaim extends Claim {
	readonly signature: Uint8Array;
}

/** One payout, as the operator exports, pays and confirms it. */
export interface Payout {
	/** `wallet.number`: what confirm and release name. */
	readonly id: string;
	readonly wallet: string;
	readonly number: number;
	readonly nano: bigint;
	/** Base58 address to pay. */
	readonly address: string;
	readonly state: "claimed" | "paid" | "failed";
	/** Of the transaction that paid it. */
	readonly reference: string | null;
	/** Why it was released. */
	readonly reason: string | null;
	readonly claimedAtMs: number;
	readonly exportedAtMs: number | null;
	readonly settledAtMs: number | null;
}

/** Moves nano from pending to claimed. The same claim again gives the same answer. Throws `payment` for any other. */
export async function postClaim(trx: GatewayTrx, claim: SignedClaim, minNano: bigint, atMs: number): Promise<Payout> {
	const ledger = await lockLedger(trx);
	const wallet = addressOf(claim.wallet);
	const ledgerId = Buffer.from(claim.ledgerId).toString("hex");
	if (ledger.ledger_id !== ledgerId) throw refused(`it names the ledger ${ledgerId}, this is ${ledger.ledger_id}`);
	if (!verifySignature(claim.wallet, claimText(claim), claim.signature)) {
		throw new KvasirError("auth", "Cannot claim: the signature is not the wallet's");
	}
	const signature = Buffer.from(claim.signature).toString("base64");
	const claims = trx.selectFrom("gateway_claims").selectAll().where("wallet", "=", wallet);
	const last = await claims.orderBy("number", "desc").limit(1).executeTakeFirst();
	const number = BigInt(claim.number);
	const next = (last?.number ?? 0n) + 1n;
	if (number < next) {
		const stored = await claims.where("number", "=", number).executeTakeFirst();
		if (stored !== undefined && stored.signature === signature) return payoutOf(stored);
		throw refused(`number ${number} was used, the next is ${next}`);
	}
	if (number > next) throw refused(`number ${number} is not the next, ${next}`);
	if (claim.nano < minNano) throw refused(`${claim.nano} nano, the least is ${minNano}`);
	const { pending } = await balancesOf(trx, wallet);
	if (claim.nano > pending) throw refused(`${claim.nano} nano, ${pending} are pending`);
	const row: ClaimRow = {
		id: `${wallet}.${number}`,
		wallet,
		number,
		nano: claim.nano,
		address: addressOf(claim.address),
		signature,
		state: "claimed",
		reference: null,
		reason: null,
		claimed_at_ms: BigInt(atMs),
		exported_at_ms: null,
		settled_at_ms: null,
	};
	await trx.insertInto("gateway_claims").values(row).execute();
	await move(trx, row, "claim", atMs);
	return payoutOf(row);
}

/** Every claim that is not settled, oldest first, marked as exported; an export can be repeated. */
export async function exportClaims(trx: GatewayTrx, atMs: number): Promise<readonly Payout[]> {
	await lockLedger(trx);
	const open = trx.selectFrom("gateway_claims").selectAll().where("state", "=", "claimed");
	await trx
		.updateTable("gateway_claims")
		.set({ exported_at_ms: BigInt(atMs) })
		.where("state", "=", "claimed")
		.where("exported_at_ms", "is", null)
		.execute();
	return (await open.orderBy("claimed_at_ms").orderBy("id").execute()).map(payoutOf);
}

/** claimed -> paid, with the reference of the transaction that paid it; the same reference again changes nothing. */
export async function confirmClaim(trx: GatewayTrx, id: string, reference: string, atMs: number): Promise<Payout> {
	const row = await openClaim(trx, id);
	if (row.state === "paid" && row.reference === reference) return payoutOf(row);
	if (row.state !== "claimed") throw settled(row);
	if (reference === "") throw refused("a confirmation needs the transaction's reference");
	return settle(trx, { ...row, state: "paid", reference }, atMs);
}

/** claimed -> failed: the amount is pending again; releasing twice changes nothing. */
export async function releaseClaim(trx: GatewayTrx, id: string, reason: string, atMs: number): Promise<Payout> {
	const row = await openClaim(trx, id);
	if (row.state === "failed") return payoutOf(row);
	if (row.state !== "claimed") throw settled(row);
	return settle(trx, { ...row, state: "failed", reason }, atMs);
}

export function payoutOf(row: ClaimRow): Payout {
	return {
		id: row.id,
		wallet: row.wallet,
		number: Number(row.number),
		nano: row.nano,
		address: row.address,
		state: row.state as Payout["state"],
		reference: row.reference,
		reason: row.reason,
		claimedAtMs: Number(row.claimed_at_ms),
		exportedAtMs: row.exported_at_ms === null ? null : Number(row.exported_at_ms),
		settledAtMs: row.settled_at_ms === null ? null : Number(row.settled_at_ms),
	};
}

async function openClaim(trx: GatewayTrx, id: string): Promise<ClaimRow> {
	await lockLedger(trx);
	const row = await trx.selectFrom("gateway_claims").selectAll().where("id", "=", id).executeTakeFirst();
	if (row === undefined) {
		throw new KvasirError("payment", `Cannot settle the payout "${id}": there is none`, {
			hint: "List them with: kvasir ledger export-payouts",
		});
	}
	return row;
}

async function settle(trx: GatewayTrx, row: ClaimRow, atMs: number): Promise<Payout> {
	const { state, reference, reason } = row;
	const settled_at_ms = BigInt(atMs);
	await trx
		.updateTable("gateway_claims")
		.set({ state, reference, reason, settled_at_ms })
		.where("id", "=", row.id)
		.execute();
	await move(trx, row, state === "paid" ? "paid" : "failed", atMs);
	return payoutOf({ ...row, settled_at_ms });
}

function move(trx: GatewayTrx, row: ClaimRow, kind: "claim" | "paid" | "failed", atMs: number): Promise<void> {
	const { wallet, nano } = row;
	const pending = accountOf(wallet, "pending");
	const claimed = accountOf(wallet, "claimed");
	const way = {
		claim: { from: pending, to: claimed },
		paid: { from: claimed, to: accountOf(wallet, "paid") },
		failed: { from: claimed, to: pending },
	}[kind];
	return post(trx, [{ kind, wallet, reference: row.id, ...way, nano }], atMs);
}

function settled(row: ClaimRow): KvasirError {
	return refused(`${row.id} is ${row.state} already${row.reference === null ? "" : ` (${row.reference})`}`);
}

function refused(state: string): KvasirError {
	return new KvasirError("payment", `Cannot move the payout: ${state}`);
}
