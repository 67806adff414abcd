import { describe, expect, it } from "vitest";
import { proxyOf } from "./proxy-environment.ts";

const gate = "wss://gate.example";
const env = { HTTPS_PROXY: "http://proxy.example:3128" };
const hostOf = (url: string, env: Record<string, string>) => proxyOf(new URL(url), env)?.host ?? null;

describe("proxyOf()", () => {
	it("reads HTTPS_PROXY for TLS, HTTP_PROXY for the rest, ALL_PROXY for both, lower case first", () => {
		expect(hostOf(gate, env)).toBe("proxy.example:3128");
		expect(hostOf("ws://gate.example", env)).toBeNull();
		expect(hostOf("ws://gate.example", { HTTP_PROXY: "http://a:1" })).toBe("a:1");
		expect(hostOf(gate, { HTTP_PROXY: "http://a:1" })).toBeNull();
		expect(hostOf(gate, { ALL_PROXY: "http://a:1" })).toBe("a:1");
		expect(hostOf(gate, { ...env, https_proxy: "http://lower:1" })).toBe("lower:1");
		expect(hostOf(gate, { https_proxy: "", ...env })).toBe("proxy.example:3128");
		expect(hostOf(gate, { HTTPS_PROXY: "proxy.example:3128" })).toBe("proxy.example:3128");
		expect(hostOf(gate, {})).toBeNull();
	});

	it("keeps user and password", () => {
		const proxy = proxyOf(new URL(gate), { HTTPS_PROXY: "http://user:p%40ss@proxy:1" });
		expect([proxy?.username, proxy?.password]).toEqual(["user", "p%40ss"]);
	});

	it.each(["socks5://proxy:1080", "ftp://proxy", "http://"])("refuses %s, naming the variable", (text) => {
		expect(() => proxyOf(new URL(gate), { HTTPS_PROXY: text })).toThrow("Cannot use the proxy of HTTPS_PROXY");
	});

	it.each(["ws://127.0.0.1:1", "ws://localhost:1", "ws://[::1]:1", "ws://a.localhost"])("never proxies %s", (url) => {
		expect(hostOf(url, { HTTP_PROXY: "http://a:1", ALL_PROXY: "http://a:1" })).toBeNull();
	});

	it.each([
		["*", gate, true],
		["gate.example", gate, true],
		["GATE.example", gate, true],
		["example", gate, true],
		[".example", gate, true],
		["*.example", gate, true],
		["ate.example", gate, false],
		["other, gate.example", gate, true],
		["other gate.example:443", gate, true],
		["gate.example:8443", gate, false],
		["gate.example:8443", "wss://gate.example:8443", true],
		["10.0.0.0/8", "wss://10.1.2.3", true],
		["10.0.0.0/8", "wss://11.1.2.3", false],
		["10.1.2.3", "wss://10.1.2.3", true],
		["2.3", "wss://10.1.2.3", false],
		["fd00::/8", "wss://[fd00::1]", true],
		["[fd00::1]:443", "wss://[fd00::1]", true],
		["10.0.0.0/8", gate, false],
		["", gate, false],
	])("NO_PROXY %s for %s: %s", (list, url, direct) => {
		expect(hostOf(url, { ...env, NO_PROXY: list }) === null).toBe(direct);
	});
});
