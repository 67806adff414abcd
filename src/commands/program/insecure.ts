import { isIP } from "node:net";
import { KvasirError } from "../../errors.ts";

/** Refuses a URL that carries keys or money in the clear beyond this machine, unless the user insists. Throws `usage`. */
export function requireSafeUrl(url: string, insecure: boolean): URL {
	if (!URL.canParse(url)) throw new KvasirError("usage", `Cannot use "${url}": not a URL`);
	const parsed = new URL(url);
	const { protocol, hostname } = parsed;
	if (!["ws:", "wss:", "http:", "https:"].includes(protocol)) {
		throw new KvasirError("usage", `Cannot use "${url}": not a wss:// or https:// URL`);
	}
	if (insecure || protocol === "wss:" || protocol === "https:" || isLoopback(hostname)) return parsed;
	throw new KvasirError("usage", `Cannot use ${protocol}//${parsed.host}: not encrypted, and not on this machine`, {
		hint: `Use ${protocol.replace(":", "s:")}//${parsed.host}, or --insecure on a network you trust`,
	});
}

/** Whether a host is this machine itself. */
export function isLoopback(hostname: string): boolean {
	const bare = hostname.replace(/^\[|\]$/g, "");
	return bare === "localhost" || bare === "::1" || (isIP(bare) === 4 && bare.startsWith("127."));
}
