import { unitsText } from "./amounts.ts";
import type { LocalReceipt } from "./local-receipts.ts";
import type { GatewayCredit } from "./wallet-api.ts";

/** Why a receipt is credited otherwise than this home expects. */
const differenceReasons = {
	disputed: "worker and backbone counted differently: the lower figure is credited",
	self: "work for one's own backbone or wallet is not paid",
	conflict: "the backbone issued two receipts with this number: one is credited, this one is kept as evidence",
	not_polled: "the gateway has not polled all of the hub's ledger yet",
	not_at_hub: "the hub did not have this receipt when the gateway last asked: its backbone keeps it and sends it again",
	not_here:
		"credited, but not in this home's file: its link was gone when it was issued, another machine works for this wallet, or the file is new",
	bytes: "the gateway's copy of this receipt has another size",
} as const;
export type DifferenceReason = keyof typeof differenceReasons;

/** One receipt that this home and the gateway see differently. */
export interface Difference {
	readonly receipt: string;
	readonly session: string;
	readonly number: number;
	readonly reason: DifferenceReason;
	readonly explanation: string;
	/** Served bytes by this home's file; null: not in it. */
	readonly localBytes: string | null;
	/** Credited bytes; null: unknown to the gateway. */
	readonly creditedBytes: string | null;
}

/** `data` of `wallet reconcile`. */
export interface Reconciliation {
	readonly address: string;
	/** No receipt of this home is unexplained or short. */
	readonly balanced: boolean;
	/** Receipts that both sides see alike. */
	readonly agreed: number;
	readonly differences: readonly Difference[];
	/** Dispatches that were not paid, by reason, over all of the wallet's receipts. */
	readonly unpaid: Readonly<Record<string, number>>;
	readonly units: { readonly local: string; readonly credited: string };
}

/** Compares the receipts a home kept with those its gateway credited, and gives every difference its reason. */
export async function reconcile(
	address: string,
	local: AsyncIterable<LocalReceipt>,
	gateway: { readonly credits: AsyncIterable<GatewayCredit>; readonly cursorLag: number },
): Promise<Reconciliation> {
	const kept = new Map<string, LocalReceipt>();
	for await (const receipt of local) if (receipt.payout === address) kept.set(receipt.receipt, receipt);
	const differences: Difference[] = [];
	const unpaid: Record<string, number> = {};
	let agreed = 0;
	let credited = 0n;
	const seen = new Set<string>();
	for await (const line of gateway.credits) {
		if (line.kind === "confirm") continue;
		seen.add(line.receipt);
		credited += line.paidBytes;
		if (line.kind === "receipt") {
			for (const [reason, count] of Object.entries(line.unpaid)) unpaid[reason] = (unpaid[reason] ?? 0) + count;
		}
		const receipt = kept.get(line.receipt) ?? null;
		const reason = reasonOf(line, receipt);
		if (reason === null) agreed++;
		else differences.push(difference(reason, line, receipt, line.paidBytes));
	}
	let localBytes = 0n;
	for (const receipt of kept.values()) {
		localBytes += receipt.servedBytes;
		if (seen.has(receipt.receipt)) continue;
		const reason = gateway.cursorLag > 0 ? "not_polled" : "not_at_hub";
		differences.push(difference(reason, { ...receipt, receiptNumber: receipt.number }, receipt, null));
	}
	const short = differences.some(({ reason }) => reason !== "not_here");
	const units = { local: unitsText(localBytes), credited: unitsText(credited) };
	return { address, balanced: !short, agreed, differences, unpaid, units };
}

function reasonOf(line: GatewayCredit, receipt: LocalReceipt | null): DifferenceReason | null {
	if (line.kind === "conflict") return "conflict";
	if (line.reason === "disputed" || line.reason === "self") return line.reason;
	if (receipt === null) return "not_here";
	return receipt.servedBytes === line.paidBytes ? null : "bytes";
}

function difference(
	reason: DifferenceReason,
	what: Pick<GatewayCredit, "receipt" | "session" | "receiptNumber">,
	receipt: LocalReceipt | null,
	creditedBytes: bigint | null,
): Difference {
	return {
		receipt: what.receipt,
		session: what.session,
		number: what.receiptNumber,
		reason,
		explanation: differenceReasons[reason],
		localBytes: receipt === null ? null : String(receipt.servedBytes),
		creditedBytes: creditedBytes === null ? null : String(creditedBytes),
	};
}
