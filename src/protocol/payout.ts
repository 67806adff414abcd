import { type KeyPair, verifySignature } from "../io/crypto.ts";
import type { Payout } from "./messages.ts";

const label = new TextEncoder().encode("kvasir/1 payout");

/** Binds a wallet (32-byte key) to a node: the node key's signature over `"kvasir/1 payout" || wallet`. */
export function bindPayout(node: KeyPair, wallet: Uint8Array): Payout {
	return { wallet, signature: node.sign(Buffer.concat([label, wallet])) };
}

/** True when `nodeKey` itself named this wallet. */
export function payoutIsBound(nodeKey: Uint8Array, { wallet, signature }: Payout): boolean {
	return verifySignature(nodeKey, Buffer.concat([label, wallet]), signature);
}
