import { addressOf } from "../../src/io/base58.ts";
import { type EntryPage, entryHash, genesisHash, type LedgerEntry } from "../../src/ledger/entry.ts";
import type { SignedClaim } from "../../src/ledger/gateway-claims.ts";
import { claimText } from "../../src/protocol/claim-text.ts";
import { keyNamed } from "./receipts.ts";

/** The ledger of every page made here. */
export const testLedgerId = "0123456789abcdef0123456789abcdef";

/** The address that a name always yields. */
export const walletNamed = (name: string) => addressOf(keyNamed(name).publicKey);

/** One entry's worth of work for a wallet. */
export interface TestWork {
	readonly wallet: string;
	readonly bytes: bigint;
	readonly kind?: LedgerEntry["kind"];
	readonly receipt?: string;
	readonly rate?: bigint;
}

/** The page a hub would send for this work, from its first entry on. */
export function pageOf(works: readonly TestWork[]): EntryPage {
	let hash = genesisHash;
	const entries = works.map((work, i): LedgerEntry => {
		const kind = work.kind ?? "receipt";
		const entry: Omit<LedgerEntry, "hash"> = {
			number: i + 1,
			kind,
			receipt: work.receipt ?? (i + 1).toString(16).padStart(64, "0"),
			backbone: walletNamed("backbone"),
			worker: walletNamed("worker"),
			payout: work.wallet,
			session: "ab".repeat(16),
			receiptNumber: i + 1,
			pairs: 1n,
			servedBytes: work.bytes,
			paidBytes: kind === "receipt" ? work.bytes : 0n,
			policy: 1,
			rate: work.rate ?? 7_000_000n,
			status: kind === "receipt" ? "unconfirmed" : kind === "confirm" ? "confirmed" : "conflict",
			reason: kind === "conflict" ? "conflict" : null,
			unpaid: { late: 2 },
			atMs: 1_700_000_000_000 + i,
		};
		hash = entryHash(hash, entry);
		return { ...entry, hash };
	});
	return { ledgerId: testLedgerId, head: entries.length, entries };
}

/** The signed claim of a named wallet, to be paid to a key of its own. */
export function claimOf(name: string, number: number, nano: bigint, changes: Partial<SignedClaim> = {}): SignedClaim {
	const key = keyNamed(name);
	const claim = {
		ledgerId: new Uint8Array(Buffer.from(testLedgerId, "hex")),
		wallet: key.publicKey,
		number,
		nano,
		address: keyNamed(`${name}'s exchange`).publicKey,
	};
	return { ...claim, signature: key.sign(claimText(claim)), ...changes };
}
