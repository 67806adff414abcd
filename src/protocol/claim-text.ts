const label = new TextEncoder().encode("kvasir/1 claim");

/** A wallet's wish to be paid: number 1, 2, ... of this wallet at this ledger, so that a claim counts once. */
export interface Claim {
	/** 16 bytes: the ledger that owes it. */
	readonly ledgerId: Uint8Array;
	/** 32 bytes. */
	readonly wallet: Uint8Array;
	readonly number: number;
	/** Nano-KVR, above zero. */
	readonly nano: bigint;
	/** 32 bytes: the key it is paid to. */
	readonly address: Uint8Array;
}

/** What the wallet's key signs: `"kvasir/1 claim" || ledgerId || wallet || number u64 LE || nano u64 LE || address`. */
export function claimText({ ledgerId, wallet, number, nano, address }: Claim): Uint8Array {
	const figures = new Uint8Array(16);
	const view = new DataView(figures.buffer);
	view.setBigUint64(0, BigInt(number), true);
	view.setBigUint64(8, nano, true);
	const text = new Uint8Array(label.length + 16 + 32 + 16 + 32);
	let at = 0;
	for (const part of [label, ledgerId, wallet, figures, address]) {
		text.set(part, at);
		at += part.length;
	}
	return text;
}
