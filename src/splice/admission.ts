/** Who may join: anybody with a key, keys on a list, or keys that brought an invite once. A banned key never may. */
export type AdmissionMode = "open" | "allow-list" | "invite";

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
}

/** Anybody with a key. */
export const openAdmission: Admission = { mode: "open", check: async () => ({ ok: true }) };
