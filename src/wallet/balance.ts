import { kvrText, unitsText } from "./amounts.ts";
import type { GatewayClient } from "./gateway-client.ts";
import { readLocalReceipts } from "./local-receipts.ts";

/** The last receipt that was credited, or countersigned here when no gateway was asked. */
export interface LastReceipt {
	readonly receipt: string;
	readonly number: number;
	readonly status: string;
	readonly nano: string;
	readonly atMs: number;
}

/** `data` of `wallet balance`: KVR and nano-KVR as strings. */
export interface BalanceView {
	readonly address: string;
	readonly pending: string;
	readonly claimed: string;
	readonly paid: string;
	readonly units: string;
	readonly nano: { readonly pending: string; readonly claimed: string; readonly paid: string };
	readonly lastReceipt: LastReceipt | null;
	/** Entries the gateway has not credited yet; null for local receipts. */
	readonly cursorLag: number | null;
	readonly source: "gateway" | "local";
}

/** What an address has: from its gateway, else (null) from the receipts kept in the home. */
export async function readBalance(
	{ home, address, client }: { readonly home: string; readonly address: string; readonly client: GatewayClient | null },
	signal?: AbortSignal,
): Promise<BalanceView> {
	if (client === null) return localBalance(home, address);
	const balance = await client.balance(address, signal);
	const last = balance.lastReceipt;
	return view(address, balance, balance.servedBytes, {
		lastReceipt:
			last === null
				? null
				: {
						receipt: last.receipt,
						number: last.receiptNumber,
						status: last.status,
						nano: String(last.nano),
						atMs: last.atMs,
					},
		cursorLag: balance.cursorLag,
		source: "gateway",
	});
}

/** What the home's own receipts add up to for an address: nothing of it is known to be credited. */
async function localBalance(home: string, address: string): Promise<BalanceView> {
	let bytes = 0n;
	let millionths = 0n;
	let lastReceipt: LastReceipt | null = null;
	for await (const r of readLocalReceipts(home)) {
		if (r.payout !== address) continue;
		bytes += r.servedBytes;
		millionths += r.servedBytes * r.rate;
		const status = r.countersigned ? "countersigned" : "disputed";
		lastReceipt = {
			receipt: r.receipt,
			number: r.number,
			status,
			nano: String((r.servedBytes * r.rate) / 1_000_000n),
			atMs: r.atMs,
		};
	}
	const amounts = { pending: millionths / 1_000_000n, claimed: 0n, paid: 0n };
	return view(address, amounts, bytes, { lastReceipt, cursorLag: null, source: "local" });
}

function view(
	address: string,
	{ pending, claimed, paid }: { pending: bigint; claimed: bigint; paid: bigint },
	bytes: bigint,
	rest: Pick<BalanceView, "lastReceipt" | "cursorLag" | "source">,
): BalanceView {
	return {
		address,
		pending: kvrText(pending),
		claimed: kvrText(claimed),
		paid: kvrText(paid),
		units: unitsText(bytes),
		nano: { pending: String(pending), claimed: String(claimed), paid: String(paid) },
		...rest,
	};
}
