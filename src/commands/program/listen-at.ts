import { networkInterfaces } from "node:os";
import type { HostPort } from "./readers.ts";

/** The address to listen on: every interface where no host is named, IPv6 and IPv4 in one where the machine has both. */
export function listenAt({ host, port }: HostPort): { host: string; port: number } {
	if (host !== null) return { host, port };
	const families = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ family }) => family));
	return { host: families.includes("IPv6") ? "::" : "0.0.0.0", port };
}

/** The address to dial; a missing host is this machine. */
export function dialAt({ host, port }: HostPort): { host: string; port: number } {
	return { host: host ?? "127.0.0.1", port };
}
