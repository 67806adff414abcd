import ipaddr from "ipaddr.js";
import { KvasirError } from "../../errors.ts";

/** Who may say where a connection really comes from: reverse proxies in front of the gateway. */
export interface TrustedProxies {
	/** The address of the first hop that is not ours. `remote` is the socket's, `forwarded` the X-Forwarded-For header. */
	peerOf(remote: string | undefined, forwarded: string | undefined): string;
	trusts(remote: string | undefined): boolean;
}

/** Entries of X-Forwarded-For that are read, from the right. */
const hopsMax = 16;

/** Reads `--trust-proxy` CIDRs (or single addresses). Throws `usage`. */
export function trustedProxies(cidrs: readonly string[]): TrustedProxies {
	const ranges = cidrs.map(readCidr);

	function trusts(remote: string | undefined): boolean {
		const address = read(remote);
		if (address === null) return false;
		return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
	}

	return {
		trusts,
		peerOf(remote, forwarded) {
			let peer = normalise(remote);
			if (forwarded === undefined || !trusts(remote)) return peer;
			// The rightmost entry was written by the proxy nearest to us; anything left of an untrusted hop is hearsay.
			for (const hop of forwarded.split(",").slice(-hopsMax).reverse()) {
				if (read(hop.trim()) === null) return peer;
				peer = normalise(hop.trim());
				if (!trusts(peer)) return peer;
			}
			return peer;
		},
	};
}

/** The name under which an address is limited: IPv4 whole, IPv6 by its /64, which one subscriber has for himself. */
export function limitNameOf(address: string): string {
	const parsed = read(address);
	if (parsed === null || parsed.kind() === "ipv4") return address;
	return `${(parsed as ipaddr.IPv6).toNormalizedString().split(":").slice(0, 4).join(":")}::/64`;
}

function normalise(address: string | undefined): string {
	return read(address)?.toString() ?? "unknown";
}

function read(address: string | undefined): ipaddr.IPv4 | ipaddr.IPv6 | null {
	if (address === undefined || !ipaddr.isValid(address)) return null;
	// `::ffff:1.2.3.4`, as dual-stack sockets report IPv4, becomes 1.2.3.4.
	return ipaddr.process(address);
}

function readCidr(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
	try {
		if (text.includes("/")) return ipaddr.parseCIDR(text);
		const address = ipaddr.process(text);
		return [address, address.kind() === "ipv4" ? 32 : 128];
	} catch (cause) {
		throw new KvasirError("usage", `Cannot trust the proxy "${text}": not an address or CIDR`, {
			cause,
			hint: "Write it like --trust-proxy 10.0.0.0/8",
		});
	}
}
