import { kvrText } from "./amounts.ts";
import type { GatewayCredit, GatewayPayout } from "./wallet-api.ts";

/** One line of `wallet history`, oldest first. */
export interface HistoryLine {
	readonly atMs: number;
	readonly kind: "credit" | "unpaid" | "confirmed" | "claimed" | "paid" | "failed";
	readonly kvr: string;
	readonly nano: string;
	/** The receipt's hash, the payout's id or the paying transaction. */
	readonly reference: string;
	/** Why nothing or less was paid; a receipt's remark; where it was paid to. */
	readonly note: string | null;
}

/** What happened to a wallet, in order of time. */
export async function readHistory(
	credits: AsyncIterable<GatewayCredit>,
	payouts: readonly GatewayPayout[],
): Promise<readonly HistoryLine[]> {
	const lines: HistoryLine[] = [];
	for await (const credit of credits) lines.push(creditLine(credit));
	for (const payout of payouts) lines.push(...payoutLines(payout));
	return lines.sort((a, b) => a.atMs - b.atMs);
}

function creditLine({ kind, atMs, nano, paidBytes, receipt, reason, status }: GatewayCredit): HistoryLine {
	if (kind === "confirm") return line(atMs, "confirmed", 0n, receipt, null);
	if (paidBytes === 0n) return line(atMs, "unpaid", 0n, receipt, reason);
	return line(atMs, "credit", nano, receipt, reason ?? (status === "confirmed" ? null : status));
}

function payoutLines(payout: GatewayPayout): HistoryLine[] {
	const { id, nano, address, state, reference, reason, claimedAtMs, settledAtMs } = payout;
	const claimed = line(claimedAtMs, "claimed", nano, id, address);
	if (state === "claimed" || settledAtMs === null) return [claimed];
	return [claimed, line(settledAtMs, state, nano, reference ?? id, state === "failed" ? reason : address)];
}

function line(
	atMs: number,
	kind: HistoryLine["kind"],
	nano: bigint,
	reference: string,
	note: string | null,
): HistoryLine {
	return { atMs, kind, kvr: kvrText(nano), nano: String(nano), reference, note };
}
