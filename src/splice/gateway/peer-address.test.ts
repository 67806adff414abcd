import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dialWorker, startSpliceSwarm } from "../../../test/support/splice-swarm.ts";
import { limitNameOf, trustedProxies } from "./peer-address.ts";

describe("trustedProxies()", () => {
	const proxies = trustedProxies(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]);

	it.each([
		["nobody's header but a trusted proxy's", "6.6.6.6", "1.2.3.4", "6.6.6.6"],
		["the entry the proxy wrote", "10.1.1.1", "1.2.3.4", "1.2.3.4"],
		["the first hop from the right that is not ours", "10.1.1.1", "9.9.9.9, 1.2.3.4, 10.2.2.2", "1.2.3.4"],
		["nothing left of what is no address", "10.1.1.1", "1.2.3.4, nonsense, 10.2.2.2", "10.2.2.2"],
		["IPv4 in IPv6 clothes", "::ffff:127.0.0.1", "::ffff:1.2.3.4", "1.2.3.4"],
		["IPv6", "fd00::1", "2001:db8::7", "2001:db8::7"],
		["the proxy itself when it says nothing", "10.1.1.1", undefined, "10.1.1.1"],
	])("believes %s", (_, remote, forwarded, peer) => {
		expect(proxies.peerOf(remote, forwarded)).toBe(peer);
	});

	it("never throws, whatever the header", () => {
		fc.assert(
			fc.property(fc.string(), (header) => {
				expect(typeof proxies.peerOf("10.0.0.1", header)).toBe("string");
			}),
		);
		expect(proxies.peerOf(undefined, "1.2.3.4")).toBe("unknown");
	});

	it("refuses what is no CIDR, with the option to use", () => {
		expect(() => trustedProxies(["10.0.0.0/99"])).toThrow(expect.objectContaining({ code: "usage" }));
		expect(() => trustedProxies(["proxy.example"])).toThrow(/proxy\.example/);
	});
});

describe("limitNameOf()", () => {
	it("takes IPv4 whole and IPv6 by its /64", () => {
		expect(limitNameOf("1.2.3.4")).toBe("1.2.3.4");
		expect(limitNameOf("2001:db8:1:2::1")).toBe(limitNameOf("2001:db8:1:2:ffff::9"));
		expect(limitNameOf("2001:db8:1:2::1")).not.toBe(limitNameOf("2001:db8:1:3::1"));
	});
});

describe("a gateway behind a proxy", () => {
	it("names the worker's own address to the hub, and limits by it", async () => {
		await using swarm = await startSpliceSwarm({
			gateway: { trustProxy: ["127.0.0.0/8"], limits: { linksPerAddressMax: 1 } },
		});
		const from = (address: string) => dialWorker(swarm.host, { headers: { "X-Forwarded-For": address } });
		const first = await from("1.2.3.4");
		await expect(from("1.2.3.4")).rejects.toMatchObject({ status: 429 });
		const second = await from("1.2.3.5");
		expect(swarm.backbone.requests.map(({ headers }) => headers["x-kvasir-peer"])).toEqual(["1.2.3.4", "1.2.3.5"]);
		first.terminate();
		second.terminate();
	});
});
