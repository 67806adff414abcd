import { execFileSync } from "node:child_process";
import { onTestFinished } from "vitest";

/** Hosts that are namespaces of this kernel's network, tied by cables that are veth pairs. */
export interface NetNamespaces {
	/** Words that start a program on that host. */
	on(host: string): readonly string[];
}

const ip = (...words: readonly string[]) => execFileSync("ip", words, { stdio: "pipe" });

/** Whether this process may make network namespaces: root, and a kernel that has them. */
export function canMakeNamespaces(): boolean {
	const probe = `kv-probe-${process.pid}`;
	try {
		ip("netns", "add", probe);
		ip("netns", "del", probe);
		return true;
	} catch {
		return false;
	}
}

/**
 * Makes hosts and cables, gone when the test is over.
 *
 * @param cables each `[host, address, host, address]`, addresses in one /24
 */
export function makeNamespaces(
	hosts: readonly string[],
	cables: readonly (readonly [string, string, string, string])[],
): NetNamespaces {
	const name = (host: string) => `kv-${process.pid}-${host}`;
	onTestFinished(() => {
		for (const host of hosts) ip("netns", "del", name(host));
	});
	for (const host of hosts) {
		ip("netns", "add", name(host));
		ip("-n", name(host), "link", "set", "lo", "up");
	}
	for (const [index, [left, leftAddress, right, rightAddress]] of cables.entries()) {
		const [a, b] = [`kv${process.pid % 10_000}a${index}`, `kv${process.pid % 10_000}b${index}`];
		ip("link", "add", a, "netns", name(left), "type", "veth", "peer", "name", b, "netns", name(right));
		for (const [host, device, address] of [
			[left, a, leftAddress],
			[right, b, rightAddress],
		] as const) {
			ip("-n", name(host), "address", "add", `${address}/24`, "dev", device);
			ip("-n", name(host), "link", "set", device, "up");
		}
	}
	return { on: (host) => ["ip", "netns", "exec", name(host)] };
}
