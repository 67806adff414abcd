import { KvasirError } from "../errors.ts";
import { addressOf, keyOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import { type KeyPair, verifySignature } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import type { NonceCache } from "./nonce-cache.ts";
import { base64url, fromBase64url, type SignedHeaderRefusal, signedText, skewMaxSeconds } from "./signed-text.ts";

// `Authorization: Kvasir1 <base58 key>.<unix seconds>.<nonce>.<signature>` (wire.md section 4).
// Signed text, one field a line: label, host, model, time, nonce.

/** What the token is for: an upgrade or a slice at the gateway, or a connection parked at the hub. */
export type AuthorizationLabel = "kvasir/1 relay" | "kvasir/1 park";

const scheme = "Kvasir1 ";
const subprotocolPrefix = "kvasir.auth.";
const pattern = /^([1-9A-HJ-NP-Za-km-z]{32,44})\.(\d{1,12})\.([A-Za-z0-9_-]{16,32})\.([A-Za-z0-9_-]{86})$/;

/** What a token is bound to. */
export interface AuthorizationSubject {
	readonly label: AuthorizationLabel;
	/** `relay`: the gateway's public host (with its port where it is not the default). `park`: the hub's ledgerId, or empty. */
	readonly host: string;
	/** The model's name; empty where the request names none. */
	readonly model: string;
}

export type AuthorizationCheck =
	| { readonly ok: true; readonly key: Uint8Array }
	| { readonly ok: false; readonly reason: SignedHeaderRefusal };

/** The value of an Authorization header; `offsetSeconds` corrects a clock that the server called wrong. Throws `usage` for a subject with control characters. */
export function signAuthorization(
	subject: AuthorizationSubject,
	{
		identity,
		clock,
		random,
		offsetSeconds = 0,
	}: { identity: KeyPair; clock: Clock; random: Random; offsetSeconds?: number },
): string {
	const time = String(Math.floor(clock.now() / 1000) + offsetSeconds);
	const nonce = base64url(random.bytes(16));
	const text = textOf(subject, time, nonce);
	if (text === null) {
		throw new KvasirError("usage", "Cannot sign in: the host or the model's name holds control characters");
	}
	return `${scheme}${addressOf(identity.publicKey)}.${time}.${nonce}.${base64url(identity.sign(text))}`;
}

/** Checks form, time, signature and, last, that the nonce is new; the reason is for the log, the key is proved. */
export function checkAuthorization(
	header: string | undefined,
	subject: AuthorizationSubject,
	{ clock, nonces }: { clock: Clock; nonces: NonceCache },
): AuthorizationCheck {
	if (header === undefined || header === "") return { ok: false, reason: "missing" };
	const match = header.startsWith(scheme) ? pattern.exec(header.slice(scheme.length)) : null;
	if (match === null) return { ok: false, reason: "malformed" };
	const [, address, time, nonce, signature] = match as unknown as [string, string, string, string, string];
	const key = keyOrNull(address);
	const text = textOf(subject, time, nonce);
	if (key === null || text === null) return { ok: false, reason: "malformed" };
	if (Math.abs(clock.now() / 1000 - Number(time)) > skewMaxSeconds) return { ok: false, reason: "skew" };
	if (!verifySignature(key, text, fromBase64url(signature))) return { ok: false, reason: "signature" };
	if (!nonces.add(`${address}.${nonce}`)) return { ok: false, reason: "replay" };
	return { ok: true, key };
}

/** The same token as a WebSocket subprotocol, for browsers, which cannot set headers. */
export function authorizationSubprotocol(header: string): string {
	return subprotocolPrefix + base64url(new TextEncoder().encode(header.slice(scheme.length)));
}

/** The Authorization header hidden in a `Sec-WebSocket-Protocol` list; undefined when there is none. */
export function authorizationOfSubprotocols(list: string | undefined): string | undefined {
	const found = list
		?.split(",", 8)
		.map((name) => name.trim())
		.find((name) => name.startsWith(subprotocolPrefix));
	if (found === undefined || found.length > 512) return undefined;
	return scheme + new TextDecoder().decode(fromBase64url(found.slice(subprotocolPrefix.length)));
}

function textOf({ label, host, model }: AuthorizationSubject, time: string, nonce: string): Uint8Array | null {
	return signedText([label, host.toLowerCase(), model, time, nonce]);
}

function keyOrNull(address: string): Uint8Array | null {
	try {
		return keyOf(address);
	} catch {
		return null;
	}
}
