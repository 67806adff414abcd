import type { Logger } from "../../io/log.ts";
import type { AdmissionStore } from "./admission-store.ts";

/** Who may join: anybody with a key, keys on a list, or keys that brought an invite once. A banned key never may. */
const admissionModes = ["open", "allow-list", "invite"] as const;
export type AdmissionMode = (typeof admissionModes)[number];

export type AdmissionRefusal =
	| "banned"
	| "not_listed"
	| "invite_missing"
	| "invite_unknown"
	| "invite_used"
	| "invite_expired"
	| "admission_unavailable";

export type AdmissionCheck = { readonly ok: true } | { readonly ok: false; readonly reason: AdmissionRefusal };

/** Decides over a key that is already proved. */
export interface Admission {
	readonly mode: AdmissionMode;
	/** `key` in base58; an unused `invite` is spent by this call. Never rejects. */
	check(key: string, invite: string | undefined): Promise<AdmissionCheck>;
	/** Those of the live keys that have been banned since. Never rejects. */
	bannedOf(keys: readonly string[]): Promise<readonly string[]>;
}

/** Anybody with a key, and no ban list: where no store is kept. */
export const openAdmission: Admission = {
	mode: "open",
	check: async () => ({ ok: true }),
	bannedOf: async () => [],
};

/** Admission by the store's lists. When the store cannot be read nobody new is let in, and whoever is linked stays. */
export function storedAdmission(
	mode: AdmissionMode,
	store: Pick<AdmissionStore, "admit" | "isBanned" | "bannedOf">,
	log: Logger,
): Admission {
	async function decide(key: string, invite: string | undefined): Promise<AdmissionCheck> {
		if (mode === "open") return (await store.isBanned(key)) ? { ok: false, reason: "banned" } : { ok: true };
		const check = await store.admit(key, mode === "invite" ? invite : undefined);
		if (check.ok || mode === "invite" || check.reason !== "invite_missing") return check;
		return { ok: false, reason: "not_listed" };
	}
	return {
		mode,
		async check(key, invite) {
			try {
				return await decide(key, invite);
			} catch (error) {
				log.error({ error: String(error) }, "the admission lists cannot be read");
				return { ok: false, reason: "admission_unavailable" };
			}
		},
		async bannedOf(keys) {
			try {
				return await store.bannedOf(keys);
			} catch (error) {
				log.error({ error: String(error) }, "the ban list cannot be read");
				return [];
			}
		},
	};
}
