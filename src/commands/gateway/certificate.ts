import { stat } from "node:fs/promises";
import { KvasirError } from "../../errors.ts";
import { readSmallFile } from "../../io/files.ts";
import type { Certificate } from "../../splice/gateway/certificate.ts";
import type { Context } from "../program/context.ts";

const checkMs = 30_000;
const pemBytesMax = 1 << 20;

interface CertificateFiles {
	readonly tlsCert: string | undefined;
	readonly tlsKey: string | undefined;
	readonly plain: boolean;
}

/** Reads the gateway's certificate; null with `--plain`. Throws `usage` where neither or both are said, `file_missing`. */
export async function readCertificate({ tlsCert, tlsKey, plain }: CertificateFiles): Promise<Certificate | null> {
	if (plain !== (tlsCert === undefined && tlsKey === undefined) || (tlsCert === undefined) !== (tlsKey === undefined)) {
		throw new KvasirError("usage", "Cannot serve: say either --tls-cert and --tls-key, or --plain", {
			hint: "--plain is for loopback, or behind a proxy that ends TLS",
		});
	}
	if (tlsCert === undefined || tlsKey === undefined) return null;
	const [cert, key] = await Promise.all([tlsCert, tlsKey].map(readPem));
	return { cert: cert!, key: key! };
}

/** Calls `use` with the certificate again when one of its files changed, and on SIGHUP; one that cannot be read is only logged. */
export function watchCertificate(
	files: CertificateFiles,
	{ clock, log, onHangup }: Pick<Context, "clock" | "log" | "onHangup">,
	use: (certificate: Certificate) => void,
): () => void {
	// Nothing to read again, and no reason to end.
	if (files.plain) return onHangup(() => {});
	let known = "";
	let cancel = () => {};
	const reload = async (always: boolean) => {
		try {
			const now = await Promise.all([files.tlsCert!, files.tlsKey!].map(async (path) => (await stat(path)).mtimeMs));
			const changed = known !== "" && known !== now.join();
			known = now.join();
			if (!changed && !always) return;
			use((await readCertificate(files))!);
			log.info({}, "certificate loaded again");
		} catch (error) {
			log.error({ error: (error as Error).message }, "the certificate cannot be loaded again, the old one stays");
		}
	};
	const watch = () => {
		cancel = clock.after(checkMs, () => void reload(false).then(watch));
	};
	const offHangup = onHangup(() => void reload(true));
	void reload(false).then(watch);
	return () => {
		offHangup();
		cancel();
	};
}

async function readPem(path: string): Promise<Buffer> {
	const pem = await readSmallFile(path, pemBytesMax);
	if (pem !== null) return pem;
	throw new KvasirError("file_missing", `Cannot read ${path}: no such file`, {
		hint: "--tls-cert and --tls-key name PEM files",
	});
}
