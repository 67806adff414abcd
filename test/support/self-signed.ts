import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

// A self-signed certificate for loopback, made on the spot: X.509 v3, ECDSA P-256, SAN localhost and 127.0.0.1 (RFC 5280, in DER).

const ecdsaWithSha256 = "1.2.840.10045.4.3.2";
const commonName = "2.5.4.3";
const subjectAltName = "2.5.29.17";
const basicConstraints = "2.5.29.19";

/** PEM texts of a fresh certificate and its key, valid for an hour either way. */
export function selfSigned(name = "localhost"): { cert: string; key: string } {
	const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
	const algorithm = sequence(oid(ecdsaWithSha256));
	const subject = sequence(tlv(0x31, sequence(oid(commonName), tlv(0x0c, Buffer.from(name)))));
	const hour = 3_600_000;
	const validity = sequence(time(Date.now() - hour), time(Date.now() + hour));
	const names = sequence(
		tlv(0x82, Buffer.from(name)),
		tlv(0x82, Buffer.from("localhost")),
		tlv(0x87, Buffer.from([127, 0, 0, 1])),
	);
	const authority = sequence(
		oid(basicConstraints),
		tlv(0x01, Buffer.from([0xff])),
		tlv(0x04, sequence(tlv(0x01, Buffer.from([0xff])))),
	);
	const extensions = tlv(0xa3, sequence(sequence(oid(subjectAltName), tlv(0x04, names)), authority));
	const serial = tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
	const spki = publicKey.export({ format: "der", type: "spki" });
	const version = tlv(0xa0, tlv(0x02, Buffer.from([2])));
	const tbs = sequence(version, serial, algorithm, subject, validity, subject, spki, extensions);
	const signature = tlv(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", tbs, privateKey)]));
	const der = sequence(tbs, algorithm, signature);
	const lines = der.toString("base64").match(/.{1,64}/g)!;
	return {
		cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
		key: privateKey.export({ format: "pem", type: "pkcs8" }) as string,
	};
}

function tlv(tag: number, content: Buffer): Buffer {
	const { length } = content;
	if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
	const bytes = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
	return Buffer.concat([Buffer.from([tag, ...bytes]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
	return tlv(0x30, Buffer.concat(parts));
}

function oid(dotted: string): Buffer {
	const [a, b, ...rest] = dotted.split(".").map(Number) as [number, number, ...number[]];
	const bytes = [a * 40 + b];
	for (const arc of rest) {
		const groups = [arc & 0x7f];
		for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
		bytes.push(...groups);
	}
	return tlv(0x06, Buffer.from(bytes));
}

function time(ms: number): Buffer {
	const digits = new Date(ms).toISOString().replace(/[-:T]/g, "").slice(2, 14);
	return tlv(0x17, Buffer.from(`${digits}Z`));
}
