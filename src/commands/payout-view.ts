import { kvrText } from "../wallet/amounts.ts";

interface Payout {
	readonly id: string;
	readonly wallet: string;
	readonly number: number;
	readonly nano: bigint;
	readonly address: string;
	readonly state: "claimed" | "paid" | "failed";
	readonly reference: string | null;
	readonly reason: string | null;
	readonly claimedAtMs: number;
	readonly exportedAtMs: number | null;
	readonly settledAtMs: number | null;
}

/** A payout as commands print it: KVR and nano-KVR as strings. */
export function payoutView({ nano, ...facts }: Payout) {
	return { ...facts, kvr: kvrText(nano), nano: String(nano) };
}

export type PayoutView = ReturnType<typeof payoutView>;

/** `ADDRESS.1: 0.5 KVR to ADDRESS, paid (reference)`. */
export function describePayout({ id, kvr, address, state, reference, reason }: PayoutView): string {
	const why = reference ?? reason;
	return `${id}: ${kvr} KVR to ${address}, ${state}${why === null ? "" : ` (${why})`}`;
}
