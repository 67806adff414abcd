import { type KeyPair, sha256, verifySignature } from "../io/crypto.ts";
import type { Receipt } from "./receipt.ts";

const labels = {
	receipt: Buffer.from("kvasir/1 receipt"),
	countersign: Buffer.from("kvasir/1 countersign"),
};

/** The backbone's 64-byte signature over `"kvasir/1 receipt" || SHA-256(body)`. */
export function signReceipt(backbone: KeyPair, body: Uint8Array): Uint8Array {
	return backbone.sign(Buffer.concat([labels.receipt, sha256(body)]));
}

/** The worker's 64-byte signature over `"kvasir/1 countersign" || SHA-256(body)`. */
export function countersignReceipt(worker: KeyPair, body: Uint8Array): Uint8Array {
	return worker.sign(Buffer.concat([labels.countersign, sha256(body)]));
}

/** True when the backbone named in the receipt signed these bytes. */
export function verifyReceipt(receipt: Receipt, body: Uint8Array, signature: Uint8Array): boolean {
	return verifySignature(receipt.backbone, Buffer.concat([labels.receipt, sha256(body)]), signature);
}

/** True when the worker named in the receipt countersigned these bytes. */
export function verifyCountersign(receipt: Receipt, body: Uint8Array, signature: Uint8Array): boolean {
	return verifySignature(receipt.worker, Buffer.concat([labels.countersign, sha256(body)]), signature);
}
