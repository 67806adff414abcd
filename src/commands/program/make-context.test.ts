import { describe, expect, it } from "vitest";
import { memoryHost } from "../../../test/support/memory-host.ts";
import { makeContext } from "./make-context.ts";

const global = { json: false, quiet: false, logLevel: "warn" as const, home: "/nowhere" };
const open = (host: ReturnType<typeof memoryHost>, json = false) =>
	makeContext({ host, global: { ...global, json }, home: "/nowhere", declarations: async () => [] });

describe("makeContext()", () => {
	it.each([
		["SIGINT", 130],
		["SIGTERM", 143],
	] as const)("%s asks to drain, a second one quits with %i", async (name, code) => {
		const host = memoryHost([]);
		const { context, close } = await open(host);
		expect(context.signal.aborted).toBe(false);
		host.send(name);
		expect(context.signal.aborted).toBe(true);
		expect(host.exits).toEqual([]);
		host.send(name);
		expect(host.exits).toEqual([code]);
		expect(await close()).toBe(code);
	});

	it("SIGHUP is for those who listen; without any, it asks to drain as the others do", async () => {
		const host = memoryHost([]);
		const { context, close } = await open(host);
		let heard = 0;
		const off = context.onHangup(() => heard++);
		host.send("SIGHUP");
		expect([heard, context.signal.aborted]).toEqual([1, false]);
		off();
		host.send("SIGHUP");
		expect([heard, context.signal.aborted]).toEqual([1, true]);
		host.send("SIGHUP");
		expect(host.exits).toEqual([129]);
		expect(await close()).toBe(129);
	});

	it("drains when the parent that holds its stdin is gone", async () => {
		const host = memoryHost([], { env: { KVASIR_PARENT: "stdin" } });
		const { context, close } = await open(host);
		const aborted = new Promise((resolve) => context.signal.addEventListener("abort", resolve));
		host.stdin.push(null);
		await aborted;
		expect(await close()).toBeUndefined();
	});

	it("prints events as lines of JSON, or their text", async () => {
		const text = memoryHost([]);
		(await open(text)).context.emit({ event: "listening", port: 7 }, "listening on 7");
		expect([text.out(), text.err()]).toEqual(["", "listening on 7\n"]);
		const json = memoryHost([]);
		(await open(json, true)).context.emit({ event: "listening", port: 7, nano: 5n }, "listening on 7");
		expect(json.out()).toBe('{"event":"listening","port":7,"nano":"5"}\n');
	});

	it("asks for no secret where stdin is no terminal", async () => {
		const { context } = await open(memoryHost([]));
		await expect(context.askSecret("Passphrase", "use --passphrase-file")).rejects.toMatchObject({
			code: "usage",
			hint: "use --passphrase-file",
		});
	});

	it("reads a secret from a terminal without showing it", async () => {
		const host = memoryHost([], { terminal: true });
		const { context } = await open(host);
		const asked = context.askSecret("Passphrase", "");
		host.stdin.push("open sesame\r");
		expect(await asked).toBe("open sesame");
		expect(host.err()).not.toContain("sesame");
	});
});
