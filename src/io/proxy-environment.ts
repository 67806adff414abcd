import ipaddr from "ipaddr.js";
import { KvasirError } from "../errors.ts";

/** The environment's variables, passed in. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy that HTTPS_PROXY (https, wss), HTTP_PROXY (http, ws) or ALL_PROXY names for a URL; null where it is reached directly:
 * none is named, NO_PROXY lists the host, or the host is this machine. Lower case counts first, as everywhere.
 * Throws `proxy` for a value that is no http:// or https:// URL.
 */
export function proxyOf(url: URL, env: Environment): URL | null {
	const kind = url.protocol === "https:" || url.protocol === "wss:" ? "https" : "http";
	const name = [`${kind}_proxy`, `${kind.toUpperCase()}_PROXY`, "all_proxy", "ALL_PROXY"].find((key) => env[key]);
	if (name === undefined || isLoopback(url.hostname)) return null;
	if (isExcepted(url, env.no_proxy || env.NO_PROXY || "")) return null;
	const text = env[name]!;
	const proxy = URL.canParse(text) && text.includes("://") ? new URL(text) : parseBare(text);
	if (proxy !== null && (proxy.protocol === "http:" || proxy.protocol === "https:")) return proxy;
	throw new KvasirError("proxy", `Cannot use the proxy of ${name}: not an http:// URL`, {
		hint: `For example ${name}=http://user:password@proxy.example:3128`,
	});
}

/** `proxy:3128` without a scheme, as many write it. */
function parseBare(text: string): URL | null {
	return /^[a-z][a-z0-9+.-]*:\/\//i.test(text) || !URL.canParse(`http://${text}`) ? null : new URL(`http://${text}`);
}

/** NO_PROXY: names (with their subdomains), addresses, networks, `*`; each with or without a port. */
function isExcepted(url: URL, list: string): boolean {
	const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
	const port = url.port || (url.protocol === "https:" || url.protocol === "wss:" ? "443" : "80");
	return list.split(/[\s,]+/).some((entry) => entry !== "" && matches(entry.toLowerCase(), host, port));
}

function matches(entry: string, host: string, port: string): boolean {
	if (entry === "*") return true;
	const network = networkOf(entry);
	if (network !== null) return ipaddr.isValid(host) && within(host, network);
	const [, name = "", entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry)!;
	if (entryPort !== undefined && entryPort !== port) return false;
	const bare = name.replace(/^\*?\./, "").replace(/^\[|\]$/g, "");
	return bare !== "" && (host === bare || (host.endsWith(`.${bare}`) && !ipaddr.isValid(host)));
}

type Network = ReturnType<typeof ipaddr.parseCIDR>;

function networkOf(entry: string): Network | null {
	return ipaddr.isValidCIDR(entry) ? ipaddr.parseCIDR(entry) : null;
}

function within(host: string, network: Network): boolean {
	const address = ipaddr.process(host);
	return address.kind() === network[0].kind() && address.match(network);
}

function isLoopback(hostname: string): boolean {
	const host = hostname.replace(/^\[|\]$/g, "");
	return host === "localhost" || host.endsWith(".localhost") || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
