import { KvasirError } from "../errors.ts";
import { type Ephemeral, hkdfSha256, sha256 } from "../io/crypto.ts";

// What both sides of the handshake derive from the bytes of its messages, exactly as sent (wire.md section 2).

const text = new TextEncoder();

/** What the worker's `auth` signs: `"kvasir/1 worker" || SHA-256(hello || challenge)`. */
export function workerProof(hello: Uint8Array, challenge: Uint8Array): Uint8Array {
	return Buffer.concat([text.encode("kvasir/1 worker"), sha256(hello, challenge)]);
}

/** What the backbone's `welcome` signs: `"kvasir/1 backbone" || SHA-256(hello || challenge || auth || body)`. */
export function backboneProof(transcript: Uint8Array): Uint8Array {
	return Buffer.concat([text.encode("kvasir/1 backbone"), transcript]);
}

/** SHA-256(hello || challenge || auth || body): signed by the backbone, and the salt of the keys. */
export function transcriptOf(hello: Uint8Array, challenge: Uint8Array, auth: Uint8Array, body: Uint8Array): Uint8Array {
	return sha256(hello, challenge, auth, body);
}

/** Tag keys of both directions, 32 bytes each. */
export interface SessionKeys {
	readonly workerToBackbone: Uint8Array;
	readonly backboneToWorker: Uint8Array;
}

/** Throws `auth` when the agreement gives nothing secret (an all-zero result, or not a key at all). */
export function sessionKeys(mine: Ephemeral, theirs: Uint8Array, transcript: Uint8Array): SessionKeys {
	const shared = mine.agree(theirs);
	if (shared === null) throw new KvasirError("auth", "Cannot agree on a key: the peer's ephemeral key gives no secret");
	const keys = hkdfSha256(shared, transcript, "kvasir/1 keys", 64);
	return { workerToBackbone: keys.subarray(0, 32), backboneToWorker: keys.subarray(32) };
}
