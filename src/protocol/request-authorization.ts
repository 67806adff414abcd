import { KvasirError } from "../errors.ts";
import { addressOf, keyOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import { equalBytes, hmacSha256, type KeyPair, sha256, verifySignature } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import type { NonceCache } from "./nonce-cache.ts";
import { base64url, fromBase64url, type SignedHeaderRefusal, signedText, skewMaxSeconds } from "./signed-text.ts";

// Authentication of one HTTP request at the hub's API and of the wallet's signed requests (wire.md section 4):
// a signature or, under the gateway-hub secret, an HMAC over label, method, path with query, SHA-256 of the body, time, nonce
// and any further facts that must not change on the way (such as forwarded headers).
//   Authorization: Kvasir1-Signature <base58 key>.<unix seconds>.<nonce>.<signature>
//   Authorization: Kvasir1-Secret <unix seconds>.<nonce>.<mac>

const label = "kvasir/1 request";
const signaturePattern =
	/^Kvasir1-Signature ([1-9A-HJ-NP-Za-km-z]{32,44})\.(\d{1,12})\.([A-Za-z0-9_-]{16,32})\.([A-Za-z0-9_-]{86})$/;
const secretPattern = /^Kvasir1-Secret (\d{1,12})\.([A-Za-z0-9_-]{16,32})\.([A-Za-z0-9_-]{43})$/;

/** The request a header is bound to. */
export interface SignedRequest {
	readonly method: string;
	/** With its query, as on the request line. */
	readonly path: string;
	/** Empty or absent for a request without a body. */
	readonly body?: Uint8Array;
	/** Values of forwarded headers, in an order both sides know. */
	readonly facts?: readonly string[];
}

/** Who signs: a key (backbone, worker, wallet) or the holder of the gateway-hub secret. */
export type RequestSigner = { readonly identity: KeyPair } | { readonly secret: Uint8Array };

export type RequestCheck =
	| { readonly ok: true; readonly by: "key"; readonly key: Uint8Array }
	| { readonly ok: true; readonly by: "secret" }
	| { readonly ok: false; readonly reason: SignedHeaderRefusal };

/** The Authorization header of one request. Throws `usage` for a path or fact with control characters. */
export function signRequest(
	request: SignedRequest,
	signer: RequestSigner,
	{ clock, random }: { clock: Clock; random: Random },
): string {
	const time = String(Math.floor(clock.now() / 1000));
	const nonce = base64url(random.bytes(16));
	const text = textOf(request, time, nonce);
	if (text === null) {
		throw new KvasirError(
			"usage",
			`Cannot sign the request ${request.method}: its path or facts hold control characters`,
		);
	}
	if ("secret" in signer) return `Kvasir1-Secret ${time}.${nonce}.${base64url(hmacSha256(signer.secret, text))}`;
	const { identity } = signer;
	return `Kvasir1-Signature ${addressOf(identity.publicKey)}.${time}.${nonce}.${base64url(identity.sign(text))}`;
}

/** Checks a request's header. Without `secret` an HMAC is refused; whether a proved key may do what it asks is the caller's question. */
export function checkRequest(
	header: string | undefined,
	request: SignedRequest,
	{ clock, nonces, secret }: { clock: Clock; nonces: NonceCache; secret?: Uint8Array },
): RequestCheck {
	if (header === undefined || header === "") return { ok: false, reason: "missing" };
	const signed = signaturePattern.exec(header);
	const keyed = secretPattern.exec(header);
	const [address, time, nonce, proof] = signed?.slice(1) ?? (keyed === null ? [] : ["", ...keyed.slice(1)]);
	if (address === undefined || time === undefined || nonce === undefined || proof === undefined) {
		return { ok: false, reason: "malformed" };
	}
	const text = textOf(request, time, nonce);
	if (text === null) return { ok: false, reason: "malformed" };
	if (Math.abs(clock.now() / 1000 - Number(time)) > skewMaxSeconds) return { ok: false, reason: "skew" };
	const key = address === "" ? null : keyOrNull(address);
	const proved =
		address === ""
			? secret !== undefined && equalBytes(hmacSha256(secret, text), fromBase64url(proof))
			: key !== null && verifySignature(key, text, fromBase64url(proof));
	if (!proved) return { ok: false, reason: "signature" };
	if (!nonces.add(`${address}.${nonce}`)) return { ok: false, reason: "replay" };
	return key === null ? { ok: true, by: "secret" } : { ok: true, by: "key", key };
}

function textOf({ method, path, body, facts = [] }: SignedRequest, time: string, nonce: string): Uint8Array | null {
	const digest = Buffer.from(sha256(body ?? new Uint8Array(0))).toString("hex");
	return signedText([label, method, path, digest, time, nonce, ...facts]);
}

function keyOrNull(address: string): Uint8Array | null {
	try {
		return keyOf(address);
	} catch {
		return null;
	}
}
