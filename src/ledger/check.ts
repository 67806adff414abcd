import { genesisHash } from "./entry.ts";
import type { GatewayCheck } from "./gateway-check.ts";
import type { Cursor } from "./gateway-credit.ts";
import type { HubStore, WalletTotal } from "./hub-store.ts";

/** Section 5's invariant for one wallet; all in millionths of a nano, so that nothing is rounded. */
export interface WalletCheck {
	readonly wallet: string;
	/** Receipts x rate, all of the hub's entries. */
	readonly earned: bigint;
	readonly notPolled: bigint;
	readonly pending: bigint;
	readonly claimed: bigint;
	readonly paid: bigint;
	readonly remainder: bigint;
	/** earned - (notPolled + pending + claimed + paid + remainder): 0. */
	readonly difference: bigint;
}

export interface LedgerCheck {
	readonly ok: boolean;
	readonly wallets: readonly WalletCheck[];
	/** The same sums over all wallets. */
	readonly all: Omit<WalletCheck, "wallet">;
	/** Everything that does not fit, in words. */
	readonly differences: readonly string[];
}

/** What the hub has credited: in all, and after the gateway's cursor. */
export interface HubFigures {
	readonly total: readonly WalletTotal[];
	readonly notPolled: readonly WalletTotal[];
	/** Its last entry, and the conflicts it keeps as evidence (the newest 1000 are counted). */
	readonly head: number;
	readonly conflicts: number;
	/** Of the chain (`checkChain`), and of the cursor (`diverged`). */
	readonly wrong: readonly string[];
}

/**
 * receipts x rate = not yet polled + pending + claimed + paid + remainder, per wallet and in all. Without the hub's figures
 * (another machine holds them) the gateway's own credit rows stand for the receipts.
 */
export function checkLedgers(gateway: GatewayCheck, hub: HubFigures | null): LedgerCheck {
	const earned = millionths(hub === null ? gateway.credited : hub.total);
	const notPolled = millionths(hub?.notPolled ?? []);
	const credited = millionths(gateway.credited);
	const held = new Map(gateway.wallets.map((wallet) => [wallet.wallet, wallet]));
	const differences = [...gateway.wrong, ...(hub?.wrong ?? [])];
	const wallets = [...new Set([earned, notPolled, credited, held].flatMap((figures) => [...figures.keys()]))]
		.sort()
		.map((wallet): WalletCheck => {
			const figures = held.get(wallet);
			const scaled = (nano: bigint | undefined) => (nano ?? 0n) * 1_000_000n;
			const line = {
				earned: earned.get(wallet) ?? 0n,
				notPolled: notPolled.get(wallet) ?? 0n,
				pending: scaled(figures?.pending),
				claimed: scaled(figures?.claimed),
				paid: scaled(figures?.paid),
				remainder: figures?.remainder ?? 0n,
			};
			const difference = line.earned - (line.notPolled + line.pending + line.claimed + line.paid + line.remainder);
			if (difference !== 0n)
				differences.push(`wallet ${wallet}: receipts and balances differ by ${difference} millionths of a nano`);
			const own = (credited.get(wallet) ?? 0n) + line.notPolled;
			if (own !== line.earned)
				differences.push(
					`wallet ${wallet}: the hub's entries and the gateway's credit rows differ by ${line.earned - own}`,
				);
			return { wallet, ...line, difference };
		});
	return { ok: differences.length === 0, wallets, all: sum(wallets), differences };
}

/** A gateway that has polled nothing: with it the check looks at the hub alone. */
export const noGateway: GatewayCheck = {
	cursor: { ledgerId: null, after: 0, hash: genesisHash },
	wallets: [],
	credited: [],
	wrong: [],
};

/** The hub's side of the check, for a gateway that stands at `cursor`. */
export async function readHubFigures(
	hub: Pick<HubStore, "ledgerId" | "totals" | "entriesAfter" | "checkChain" | "conflicts">,
	cursor: Cursor,
): Promise<HubFigures> {
	const wrong = [...(await hub.checkChain())];
	if (cursor.ledgerId !== null && cursor.ledgerId !== hub.ledgerId) {
		wrong.push(`the gateway credits the ledger ${cursor.ledgerId}, this is ${hub.ledgerId}`);
	}
	const page = await hub.entriesAfter(cursor.after, cursor.hash, 1);
	if ("diverged" in page)
		wrong.push(`the gateway's cursor is entry ${cursor.after}, of which the hub has another or none`);
	// Both sums end at one entry, so that what is posted meanwhile is in neither.
	const upTo = "diverged" in page ? page.diverged.head : page.head;
	return {
		total: await hub.totals(0, upTo),
		notPolled: await hub.totals(cursor.after, upTo),
		head: upTo,
		conflicts: (await hub.conflicts()).length,
		wrong,
	};
}

function millionths(totals: readonly WalletTotal[]): Map<string, bigint> {
	const sums = new Map<string, bigint>();
	for (const { wallet, rate, bytes } of totals) sums.set(wallet, (sums.get(wallet) ?? 0n) + bytes * rate);
	return sums;
}

function sum(wallets: readonly WalletCheck[]): LedgerCheck["all"] {
	const of = (pick: (line: WalletCheck) => bigint) => wallets.reduce((total, line) => total + pick(line), 0n);
	return {
		earned: of((line) => line.earned),
		notPolled: of((line) => line.notPolled),
		pending: of((line) => line.pending),
		claimed: of((line) => line.claimed),
		paid: of((line) => line.paid),
		remainder: of((line) => line.remainder),
		difference: of((line) => line.difference),
	};
}
