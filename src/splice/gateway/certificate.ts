import type https from "node:https";
import { KvasirError } from "../../errors.ts";

/** PEM texts. */
export interface Certificate {
	readonly cert: string | Buffer;
	readonly key: string | Buffer;
}

/** Uses a certificate for connections that come from now on; those that are open stay. Throws `tls` for a pair that does not fit. */
export function useCertificate(server: https.Server, { cert, key }: Certificate): void {
	try {
		server.setSecureContext({ cert, key, minVersion: "TLSv1.2" });
	} catch (cause) {
		throw new KvasirError("tls", `Cannot use the certificate: ${(cause as Error).message}`, {
			cause,
			hint: "Certificate and key must be PEM and belong together",
		});
	}
}
