import type { Transaction } from "kysely";
import { addressOf } from "../io/base58.ts";
import { sha256 } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import type { AdmissionCheck } from "./admission.ts";
import type { AdmissionTables, InviteRow } from "./admission-schema.ts";

/** An invite as lists show it. */
export interface Invite {
	readonly id: string;
	readonly note: string;
	readonly state: "open" | "used" | "expired" | "revoked";
	readonly createdAtMs: number;
	readonly expiresAtMs: number;
	/** Base58 key that spent it. */
	readonly usedBy: string | null;
}

const codePrefix = "kvasir-invite-";
const codePattern = /^kvasir-invite-[1-9A-HJ-NP-Za-km-z]{16,22}$/;

/** A fresh code: 128 random bits. */
export function newInviteCode(random: Random): string {
	return codePrefix + addressOf(random.bytes(16));
}

/** Spends an invite for a key and allows the key, or says why the invite is no good; one use even when two come at once. */
export async function spendInvite(
	trx: Transaction<AdmissionTables>,
	key: string,
	code: string,
	nowMs: number,
): Promise<AdmissionCheck> {
	if (!codePattern.test(code)) return { ok: false, reason: "invite_unknown" };
	const now = BigInt(nowMs);
	const spent = await trx
		.updateTable("admission_invites")
		.set({ used_by: key, used_at_ms: now })
		.where("code_hash", "=", hashOf(code))
		.where("used_by", "is", null)
		.where("revoked_at_ms", "is", null)
		.where("expires_at_ms", ">", now)
		.returning("id")
		.executeTakeFirst();
	if (spent === undefined) {
		const row = await trx
			.selectFrom("admission_invites")
			.selectAll()
			.where("code_hash", "=", hashOf(code))
			.executeTakeFirst();
		if (row === undefined || row.revoked_at_ms !== null) return { ok: false, reason: "invite_unknown" };
		return { ok: false, reason: row.used_by === null ? "invite_expired" : "invite_used" };
	}
	await trx
		.insertInto("admission_allowed")
		.values({ key, invite: spent.id, at_ms: now })
		.onConflict((oc) => oc.doNothing())
		.execute();
	return { ok: true };
}

/** What is stored of a code. */
export function hashOf(code: string): string {
	return Buffer.from(sha256(new TextEncoder().encode(code))).toString("hex");
}

/** A stored row as it is shown. */
export function inviteOf(row: InviteRow, nowMs: number): Invite {
	const expired = Number(row.expires_at_ms) <= nowMs;
	const unused = row.revoked_at_ms !== null ? "revoked" : expired ? "expired" : "open";
	return {
		id: row.id,
		note: row.note,
		state: row.used_by !== null ? "used" : unused,
		createdAtMs: Number(row.created_at_ms),
		expiresAtMs: Number(row.expires_at_ms),
		usedBy: row.used_by,
	};
}
