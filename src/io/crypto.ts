import {
	createHash,
	createHmac,
	createPrivateKey,
	createPublicKey,
	diffieHellman,
	generateKeyPairSync,
	hkdfSync,
	type KeyObject,
	sign as signWith,
	timingSafeEqual,
	verify as verifyWith,
	webcrypto,
} from "node:crypto";

// The one file that knows node:crypto's key objects; a browser build replaces this file alone.

/** DER prefixes that turn raw 32-byte keys into SPKI and PKCS#8 (RFC 8410). */
const der = {
	ed25519Private: Buffer.from("302e020100300506032b657004220420", "hex"),
	x25519Public: Buffer.from("302a300506032b656e032100", "hex"),
};

/** An Ed25519 identity (RFC 8032). */
export interface KeyPair {
	/** 32 bytes. */
	readonly publicKey: Uint8Array;
	/** 64-byte signature. */
	sign(message: Uint8Array): Uint8Array;
}

/** The key pair of a 32-byte Ed25519 seed. */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
	const privateKey = createPrivateKey({
		key: Buffer.concat([der.ed25519Private, seed]),
		format: "der",
		type: "pkcs8",
	});
	return keyPairFromPrivateKey(privateKey);
}

/** The key pair of a node:crypto Ed25519 private key. */
export function keyPairFromPrivateKey(privateKey: KeyObject): KeyPair {
	const publicKey = rawPublicKey(createPublicKey(privateKey));
	return { publicKey, sign: (message) => signWith(null, message, privateKey) };
}

/** True when `signature` (64 bytes) is `publicKey`'s (32 bytes) over `message`; never throws. */
export function verifySignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
	if (publicKey.length !== 32 || signature.length !== 64) return false;
	try {
		return verifyWith(null, message, publicKeyObject(publicKey), signature);
	} catch {
		return false;
	}
}

/** `verifySignature` on the thread pool, for who verifies thousands a second; never rejects. */
export function verifySignatureAside(
	publicKey: Uint8Array,
	message: Uint8Array,
	signature: Uint8Array,
): Promise<boolean> {
	if (publicKey.length !== 32 || signature.length !== 64) return Promise.resolve(false);
	return new Promise((resolve) => {
		try {
			verifyWith(null, message, publicKeyObject(publicKey), signature, (error, fits) =>
				resolve(error === null && fits),
			);
		} catch {
			resolve(false);
		}
	});
}

/** Keys met before: the same few sign again and again. */
const publicKeys = new Map<string, KeyObject>();
const publicKeysMax = 4096;

/** From a JWK: parsing DER takes longer than verifying (190 us, against 23 us). */
function publicKeyObject(publicKey: Uint8Array): KeyObject {
	const x = Buffer.from(publicKey).toString("base64url");
	const known = publicKeys.get(x);
	if (known !== undefined) return known;
	const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
	if (publicKeys.size >= publicKeysMax) publicKeys.clear();
	publicKeys.set(x, key);
	return key;
}

/** One side of an X25519 agreement (RFC 7748). */
export interface Ephemeral {
	/** 32 bytes. */
	readonly publicKey: Uint8Array;
	/** The 32 shared bytes; null when the peer's key is not a point of the curve or the result is all zero. */
	agree(peer: Uint8Array): Uint8Array | null;
}

export function newEphemeral(): Ephemeral {
	const { publicKey, privateKey } = generateKeyPairSync("x25519");
	return {
		publicKey: rawPublicKey(publicKey),
		agree(peer) {
			try {
				const peerKey = createPublicKey({
					key: Buffer.concat([der.x25519Public, peer]),
					format: "der",
					type: "spki",
				});
				const shared = diffieHellman({ privateKey, publicKey: peerKey });
				return shared.every((byte) => byte === 0) ? null : shared;
			} catch {
				return null;
			}
		},
	};
}

/** SHA-256 over the concatenation of `parts`: 32 bytes. */
export function sha256(...parts: Uint8Array[]): Uint8Array {
	const hash = createHash("sha256");
	for (const part of parts) hash.update(part);
	return hash.digest();
}

/** HMAC-SHA-256 over the concatenation of `parts`: 32 bytes. */
export function hmacSha256(key: Uint8Array, ...parts: Uint8Array[]): Uint8Array {
	const hmac = createHmac("sha256", key);
	for (const part of parts) hmac.update(part);
	return hmac.digest();
}

/** HKDF-SHA-256 (RFC 5869). */
export function hkdfSha256(ikm: Uint8Array, salt: Uint8Array, info: string, length: number): Uint8Array {
	return new Uint8Array(hkdfSync("sha256", ikm, salt, info, length));
}

/** Compares without telling by its duration where the bytes differ. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
	return a.length === b.length && timingSafeEqual(a, b);
}

function rawPublicKey(key: KeyObject): Uint8Array {
	return new Uint8Array(key.export({ format: "der", type: "spki" }).subarray(-32));
}

/** `sha256` of one array on the thread pool, for megabytes on a thread that owns sockets. Leave the bytes alone meanwhile. */
export async function sha256Aside(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
	return new Uint8Array(await webcrypto.subtle.digest("SHA-256", bytes));
}
