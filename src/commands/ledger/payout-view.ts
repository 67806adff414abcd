import type { Payout } from "../../ledger/gateway-claims.ts";
import { kvrText } from "../../wallet/amounts.ts";

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
