import { type KeyPair, sha256, verifySignature, verifySignatureAside } from "../io/crypto.ts";
import type { Receipt } from "./receipt.ts";

const labels = {
	receipt: Buffer.from("kvasir/1 receipt"),
	countersign: Buffer.from("kvasir/1 countersign"),
};

/** The backbone's 64-byte signature over `"kvasir/1 receipt" || SHA-256(body)`. */
export function signReceipt(backbone: KeyPair, body: Uint8Array): Uint8Array {
	return backbone.sign(receiptText(body));
}

/** The worker's 64-byte signature over `"kvasir/1 countersign" || SHA-256(body)`. */
export function countersignReceipt(worker: KeyPair, body: Uint8Array): Uint8Array {
	return worker.sign(countersignText(body));
}

/** True when the worker named in the receipt countersigned these bytes. */
export function verifyCountersign(receipt: Receipt, body: Uint8Array, signature: Uint8Array): boolean {
	return verifySignature(receipt.worker, countersignText(body), signature);
}

/** True when the backbone named in the receipt signed these bytes. */
export function verifyReceipt(receipt: Receipt, body: Uint8Array, signature: Uint8Array): boolean {
	return verifySignature(receipt.backbone, receiptText(body), signature);
}

/** Both signatures of a receipt over its hash, on the thread pool; a null countersignature is not looked at. */
export async function verifyBoth(
	receipt: Receipt,
	hash: Uint8Array,
	{ signature, countersign }: { readonly signature: Uint8Array; readonly countersign: Uint8Array | null },
): Promise<{ receipt: boolean; countersign: boolean }> {
	const [byBackbone, byWorker] = await Promise.all([
		verifySignatureAside(receipt.backbone, Buffer.concat([labels.receipt, hash]), signature),
		countersign === null
			? true
			: verifySignatureAside(receipt.worker, Buffer.concat([labels.countersign, hash]), countersign),
	]);
	return { receipt: byBackbone, countersign: byWorker };
}

const receiptText = (body: Uint8Array) => Buffer.concat([labels.receipt, sha256(body)]);
const countersignText = (body: Uint8Array) => Buffer.concat([labels.countersign, sha256(body)]);
