import type { Kysely } from "kysely";
import { KvasirError } from "../errors.ts";
import { addressOf, keyOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { Random } from "../io/random.ts";
import { type Location, openDatabase } from "../ledger/database.ts";
import { migrate } from "../ledger/migrate.ts";
import type { AdmissionCheck } from "./admission.ts";
import { type AdmissionTables, admissionMigrations } from "./admission-schema.ts";
import { hashOf, type Invite, inviteOf, newInviteCode, spendInvite } from "./invites.ts";

/** Who may join, kept in the gateway's database: the gateway reads it, `kvasir gateway invite|ban|unban` writes it. */
export interface AdmissionStore {
	/** Decides by ban list and allow list; where neither has the key, `invite` is spent for it. */
	admit(key: string, invite: string | undefined): Promise<AdmissionCheck>;
	/** Whether a key is banned. */
	isBanned(key: string): Promise<boolean>;
	/** Those of `keys` that are banned. */
	bannedOf(keys: readonly string[]): Promise<readonly string[]>;
	/** A new single-use invite; `code` is the secret, told here and never again. */
	createInvite(options: {
		readonly validMs: number;
		readonly note?: string;
	}): Promise<Invite & { readonly code: string }>;
	/** Newest first, at most 1,000. */
	listInvites(): Promise<readonly Invite[]>;
	/** Throws `not_admitted` when there is no open invite of that id. */
	revokeInvite(id: string): Promise<Invite>;
	/** Allows a key without an invite. */
	allow(key: string): Promise<void>;
	/** Takes a key off the allow list; false when it was not on it. */
	disallow(key: string): Promise<boolean>;
	ban(key: string, reason?: string): Promise<void>;
	/** False when it was not banned. */
	unban(key: string): Promise<boolean>;
	close(): Promise<void>;
}

const noteMax = 256;
const listMax = 1_000;
const validMsMax = 366 * 24 * 3_600_000;

/** Opens (or creates) the admission tables at the gateway's database. Throws `ledger` or `version`. */
export async function openAdmissionStore(
	location: Location,
	{ clock, random }: { clock: Clock; random: Random },
): Promise<AdmissionStore> {
	const db = await openDatabase<AdmissionTables>(location);
	const { kysely } = db;
	await migrate(db as never, "admission", admissionMigrations);

	async function invite(id: string): Promise<Invite> {
		const row = await kysely.selectFrom("admission_invites").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
		return inviteOf(row, clock.now());
	}

	const bannedOf = async (keys: readonly string[]) => {
		if (keys.length === 0) return [];
		const rows = await kysely
			.selectFrom("admission_bans")
			.select("key")
			.where("key", "in", [...keys])
			.execute();
		return rows.map(({ key }) => key);
	};

	return {
		async admit(key, code) {
			if ((await bannedOf([key])).length > 0) return { ok: false, reason: "banned" };
			const allowed = await kysely
				.selectFrom("admission_allowed")
				.select("key")
				.where("key", "=", key)
				.executeTakeFirst();
			if (allowed !== undefined) return { ok: true };
			if (code === undefined) return { ok: false, reason: "invite_missing" };
			return kysely.transaction().execute((trx) => spendInvite(trx, key, code, clock.now()));
		},
		bannedOf,
		isBanned: async (key) => (await bannedOf([key])).length > 0,
		async createInvite({ validMs, note = "" }) {
			if (!(validMs > 0 && validMs <= validMsMax) || note.length > noteMax) {
				throw new KvasirError(
					"usage",
					`Cannot create the invite: valid for at most 366 days, a note of ${noteMax} characters`,
				);
			}
			const code = newInviteCode(random);
			const id = Buffer.from(random.bytes(5)).toString("hex");
			const now = BigInt(clock.now());
			await kysely
				.insertInto("admission_invites")
				.values({
					id,
					code_hash: hashOf(code),
					note,
					created_at_ms: now,
					expires_at_ms: now + BigInt(Math.floor(validMs)),
					used_by: null,
					used_at_ms: null,
					revoked_at_ms: null,
				})
				.execute();
			return { ...(await invite(id)), code };
		},
		async listInvites() {
			const query = kysely.selectFrom("admission_invites").selectAll();
			const rows = await query.orderBy("created_at_ms", "desc").orderBy("id").limit(listMax).execute();
			return rows.map((row) => inviteOf(row, clock.now()));
		},
		async revokeInvite(id) {
			const revoked = await kysely
				.updateTable("admission_invites")
				.set({ revoked_at_ms: BigInt(clock.now()) })
				.where("id", "=", id)
				.where("used_by", "is", null)
				.where("revoked_at_ms", "is", null)
				.returning("id")
				.executeTakeFirst();
			if (revoked !== undefined) return invite(id);
			throw new KvasirError("not_admitted", `Cannot revoke the invite "${id}": there is no open one of that name`, {
				hint: "List them with: kvasir gateway invite list; ban a key that has used one",
			});
		},
		async allow(key) {
			await kysely
				.insertInto("admission_allowed")
				.values({ key: addressOf(keyOf(key)), invite: null, at_ms: BigInt(clock.now()) })
				.onConflict((oc) => oc.doNothing())
				.execute();
		},
		disallow: (key) => remove(kysely, "admission_allowed", key),
		async ban(key, reason = "") {
			await kysely
				.insertInto("admission_bans")
				.values({ key: addressOf(keyOf(key)), reason: reason.slice(0, noteMax), at_ms: BigInt(clock.now()) })
				.onConflict((oc) => oc.doNothing())
				.execute();
		},
		unban: (key) => remove(kysely, "admission_bans", key),
		close: () => db.close(),
	};
}

async function remove(
	kysely: Kysely<AdmissionTables>,
	table: "admission_allowed" | "admission_bans",
	key: string,
): Promise<boolean> {
	const removed = await kysely.deleteFrom(table).where("key", "=", key).returning("key").executeTakeFirst();
	return removed !== undefined;
}
