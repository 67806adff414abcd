import type { Kysely, Transaction } from "kysely";
import { KvasirError } from "../../errors.ts";
import { addressOf } from "../../io/base58.ts";
import { sha256 } from "../../io/crypto.ts";
import type { Random } from "../../io/random.ts";
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

const noteMax = 256;
const listMax = 1_000;
const validMsMax = 366 * 24 * 3_600_000;

export interface InviteOptions {
	/** How long it may be used; 366 days at most. */
	readonly validMs: number;
	/** For the operator: whom it is for. */
	readonly note?: string;
}

/** Makes an invite; its code, 128 random bits, is in this answer and nowhere else. Throws `usage`. */
export async function createInvite(
	kysely: Kysely<AdmissionTables>,
	{ validMs, note = "" }: InviteOptions,
	{ random, nowMs }: { random: Random; nowMs: number },
): Promise<Invite & { readonly code: string }> {
	if (!(validMs >= 1 && validMs <= validMsMax) || note.length > noteMax) {
		throw new KvasirError("usage", `Cannot create the invite: 366 days and a note of ${noteMax} characters at most`);
	}
	const code = codePrefix + addressOf(random.bytes(16));
	const row: InviteRow = {
		id: Buffer.from(random.bytes(5)).toString("hex"),
		code_hash: hashOf(code),
		note,
		created_at_ms: BigInt(nowMs),
		expires_at_ms: BigInt(nowMs) + BigInt(Math.floor(validMs)),
		used_by: null,
		used_at_ms: null,
		revoked_at_ms: null,
	};
	await kysely.insertInto("admission_invites").values(row).execute();
	return { ...inviteOf(row, nowMs), code };
}

/** Newest first. */
export async function listInvites(kysely: Kysely<AdmissionTables>, nowMs: number): Promise<readonly Invite[]> {
	const query = kysely.selectFrom("admission_invites").selectAll();
	const rows = await query.orderBy("created_at_ms", "desc").orderBy("id").limit(listMax).execute();
	return rows.map((row) => inviteOf(row, nowMs));
}

/** Takes an unused invite back. Throws `not_admitted` when there is none of that id. */
export async function revokeInvite(kysely: Kysely<AdmissionTables>, id: string, nowMs: number): Promise<Invite> {
	const revoked = await kysely
		.updateTable("admission_invites")
		.set({ revoked_at_ms: BigInt(nowMs) })
		.where("id", "=", id)
		.where("used_by", "is", null)
		.where("revoked_at_ms", "is", null)
		.returningAll()
		.executeTakeFirst();
	if (revoked !== undefined) return inviteOf(revoked, nowMs);
	throw new KvasirError("not_admitted", `Cannot revoke the invite "${id}": there is no unused one of that name`, {
		hint: "List them with: kvasir gateway invite list; ban a key that has used one",
	});
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
function hashOf(code: string): string {
	return Buffer.from(sha256(new TextEncoder().encode(code))).toString("hex");
}

function inviteOf(row: InviteRow, nowMs: number): Invite {
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
