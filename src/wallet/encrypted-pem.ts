import { createCipheriv, createPrivateKey, type KeyObject, pbkdf2Sync } from "node:crypto";
import { KvasirError } from "../errors.ts";
import type { Random } from "../io/random.ts";

// PKCS#8 under a passphrase (RFC 5958, PBES2 of RFC 8018). Written here because node:crypto exports with 2,048 rounds of PBKDF2,
// too few for a wallet; openssl and node:crypto read either.

const rounds = 600_000;

const oid = {
	pbes2: "2a864886f70d01050d",
	pbkdf2: "2a864886f70d01050c",
	hmacWithSha256: "2a864886f70d0209",
	aes256Cbc: "60864801650304012a",
};

/** The key as `ENCRYPTED PRIVATE KEY` PEM: PBKDF2-HMAC-SHA-256 with 600,000 rounds, AES-256-CBC. */
export function encryptPem(key: KeyObject, passphrase: string, random: Random): string {
	const salt = random.bytes(16);
	const iv = random.bytes(16);
	const secret = pbkdf2Sync(passphrase, salt, rounds, 32, "sha256");
	const cipher = createCipheriv("aes-256-cbc", secret, iv);
	const sealed = Buffer.concat([cipher.update(key.export({ type: "pkcs8", format: "der" })), cipher.final()]);
	const derivation = sequence(
		objectId(oid.pbkdf2),
		sequence(octets(salt), integer(rounds), sequence(objectId(oid.hmacWithSha256), der(0x05, Buffer.alloc(0)))),
	);
	const scheme = sequence(objectId(oid.aes256Cbc), octets(iv));
	const whole = sequence(sequence(objectId(oid.pbes2), sequence(derivation, scheme)), octets(sealed));
	const lines = whole.toString("base64").match(/.{1,64}/g)!;
	return ["-----BEGIN ENCRYPTED PRIVATE KEY-----", ...lines, "-----END ENCRYPTED PRIVATE KEY-----", ""].join("\n");
}

/** The Ed25519 key of a PEM. Throws `passphrase` when it does not open, `bad_key` when it is something else; neither holds a secret. */
export function openPem(pem: string, passphrase: string): KeyObject {
	const encrypted = pem.includes("ENCRYPTED");
	let key: KeyObject;
	try {
		key = createPrivateKey(encrypted ? { key: pem, passphrase } : { key: pem });
	} catch {
		if (encrypted) throw new KvasirError("passphrase", "Cannot open the key: the passphrase does not fit");
		throw new KvasirError("bad_key", "Cannot read the key: not a private key in PEM");
	}
	if (key.asymmetricKeyType === "ed25519") return key;
	throw new KvasirError("bad_key", `Cannot use the key: ${key.asymmetricKeyType}, not ed25519`);
}

function der(tag: number, content: Uint8Array): Buffer {
	const { length } = content;
	const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
	return Buffer.concat([Buffer.of(tag, ...size), content]);
}

const sequence = (...parts: Uint8Array[]) => der(0x30, Buffer.concat(parts));
const octets = (bytes: Uint8Array) => der(0x04, bytes);
const objectId = (hex: string) => der(0x06, Buffer.from(hex, "hex"));
const integer = (value: number) => der(0x02, Buffer.of((value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff));
