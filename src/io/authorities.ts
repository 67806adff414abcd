import { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import { KvasirError } from "../errors.ts";
import { readSmallFile } from "./files.ts";
import type { Environment } from "./proxy-environment.ts";

/** Where distributions keep the certificate authorities that this machine's owner trusts. */
const bundles = [
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/cert.pem",
] as const;

const bundleBytesMax = 16 * 2 ** 20;

/**
 * Every authority to trust, as PEM: Node's own, the distribution's bundle (or SSL_CERT_FILE), and the file that the user names.
 * Throws `file_missing` and `bad_file` for the user's file; a bundle that cannot be read is only left out.
 */
export async function readAuthorities(options: { env: Environment; file?: string | undefined }): Promise<string[]> {
	const { env, file } = options;
	const authorities = [...rootCertificates];
	for (const path of env.SSL_CERT_FILE ? [env.SSL_CERT_FILE] : bundles) {
		const bundle = await readSmallFile(path, bundleBytesMax).catch(() => null);
		if (bundle === null) continue;
		authorities.push(bundle.toString("utf8"));
		break;
	}
	if (file === undefined) return authorities;
	const own = await readSmallFile(file, bundleBytesMax);
	if (own === null) {
		throw new KvasirError("file_missing", `Cannot read the certificate authority ${file}: no such file`);
	}
	// One by one: what OpenSSL cannot read among the trusted it leaves out without a word.
	const certificates = own.toString("latin1").match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
	if (certificates.length === 0) throw badAuthority(file, "no PEM certificate in it");
	for (const certificate of certificates) {
		try {
			new X509Certificate(certificate);
		} catch (cause) {
			throw badAuthority(file, "a certificate in it is damaged", cause);
		}
	}
	return [...authorities, own.toString("utf8")];
}

function badAuthority(file: string, state: string, cause?: unknown): KvasirError {
	return new KvasirError("bad_file", `Cannot read the certificate authority ${file}: ${state}`, {
		cause,
		hint: `A PEM file has lines of BEGIN CERTIFICATE; from DER: openssl x509 -inform der -in ${file} -out ca.pem`,
	});
}
