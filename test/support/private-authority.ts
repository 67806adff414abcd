import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A certificate authority that nobody else trusts, and a server's certificate of it, as files and as PEM. */
export interface PrivateAuthority {
	readonly caPath: string;
	readonly certPath: string;
	readonly keyPath: string;
	readonly ca: string;
	readonly cert: string;
	readonly key: string;
}

/** Makes both with openssl in `folder`; the server's certificate is for `hosts` (DNS names or `IP:` addresses). */
export async function privateAuthority(folder: string, hosts: readonly string[]): Promise<PrivateAuthority> {
	const at = (name: string) => join(folder, name);
	const [caPath, caKey, certPath, keyPath, requestPath] = [
		"ca.pem",
		"ca.key",
		"cert.pem",
		"key.pem",
		"request.pem",
	].map(at) as [string, string, string, string, string];
	const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
	await run("openssl", [
		"req",
		"-x509",
		...newKey,
		"-keyout",
		caKey,
		"-out",
		caPath,
		"-days",
		"2",
		"-subj",
		"/CN=Kvasir test CA",
	]);
	await run("openssl", ["req", ...newKey, "-keyout", keyPath, "-out", requestPath, "-subj", "/CN=gate"]);
	const names = hosts.map((host) => (host.includes(":") ? host : `DNS:${host}`)).join(",");
	await writeFile(at("names.ext"), `subjectAltName=${names}\n`);
	await run("openssl", [
		...["x509", "-req", "-in", requestPath, "-CA", caPath, "-CAkey", caKey, "-CAcreateserial"],
		...["-out", certPath, "-days", "2", "-extfile", at("names.ext")],
	]);
	const [ca, cert, key] = await Promise.all([caPath, certPath, keyPath].map((path) => readFile(path, "utf8")));
	return { caPath, certPath, keyPath, ca: ca!, cert: cert!, key: key! };
}
