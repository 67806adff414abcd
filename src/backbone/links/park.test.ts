import http from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { dialRelay } from "../../../test/support/dial-relay.ts";
import { type RawHub, startRawHub } from "../../../test/support/raw-hub.ts";
import { scriptedIdentity } from "../../../test/support/scripted-worker.ts";
import { addressOf } from "../../io/base58.ts";
import { systemClock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import { systemRandom } from "../../io/random.ts";
import type { Transport } from "../../protocol/link.ts";
import { type ParkEvent, Parking } from "./park.ts";
import type { Arrived } from "./reception.ts";
import { createRelayServer, type RelayServer } from "./relay-server.ts";

let hub: RawHub;
let parking: Parking;
let server: RelayServer;
afterEach(async () => {
	await parking.close();
	await server.close();
	await hub.close();
});

/** Parks at the hub; every upgraded transport echoes what it gets. */
async function parkAt(started: RawHub, count = 4) {
	const arrivals: Arrived[] = [];
	const events: ParkEvent[] = [];
	hub = started;
	server = createRelayServer({
		log: silentLog,
		receive(transport: Transport, from) {
			arrivals.push(from);
			transport.onMessage = (message) => transport.send([message]);
		},
		serve: (request, response) => response.end(`slice ${request.url}`),
	});
	parking = new Parking({
		hub: { host: "127.0.0.1", port: hub.port },
		model: "tiny",
		count,
		identity: scriptedIdentity(3),
		clock: systemClock,
		// No jitter: what is lost comes back at once.
		random: { ...systemRandom, uniform: () => 0.001 },
		log: silentLog,
		adopt: (socket) => server.adopt(socket),
		emit: (event) => events.push(event),
	});
	return { arrivals, events };
}

const echo = (transport: Transport, bytes: number) =>
	new Promise<number>((resolve) => {
		transport.onMessage = (message) => resolve(message.length);
		transport.send([new Uint8Array(bytes)]);
	});

describe("Parking", () => {
	test("keeps the wanted number of sockets parked, and replaces each one that is taken", async () => {
		const { arrivals } = await parkAt(await startRawHub());
		await hub.untilParked(4);
		expect(hub.heads[0]).toMatch(/^GET \/backbone\?model=tiny HTTP\/1\.1\r\n/);
		expect(hub.heads[0]).toMatch(/\r\nupgrade: kvasir-park\r\n/i);
		expect(hub.heads[0]).toMatch(/\r\nauthorization: Kvasir1 /i);
		const workers = await Promise.all([1, 2, 3, 4].map(() => dialRelay(hub.port)));
		await hub.untilParked(4);
		await expect.poll(() => parking.parked).toBe(4);
		expect(await echo(workers[0]!, 12_288)).toBe(12_288);
		expect(await echo(workers[3]!, 1_000_000)).toBe(1_000_000);
		expect(arrivals).toEqual(Array(4).fill({ relay: "cd".repeat(16), admitted: null }));
		for (const worker of workers) worker.terminate();
	});

	test("plain HTTP travels over the same sockets", async () => {
		await parkAt(await startRawHub(), 1);
		await hub.untilParked(1);
		const text = await new Promise<string>((resolve, reject) => {
			http
				.get({ port: hub.port, host: "127.0.0.1", path: "/v1/slices/abc", agent: false }, (response) => {
					response.setEncoding("utf8").on("data", resolve);
				})
				.on("error", reject);
		});
		expect(text).toBe("slice /v1/slices/abc");
		await hub.untilParked(1);
	});

	test("replaces a socket that the hub lost", async () => {
		await parkAt(await startRawHub(), 2);
		await hub.untilParked(2);
		hub.parked[0]!.destroy();
		hub.parked[1]!.end();
		await expect.poll(() => hub.heads.length, { timeout: 5000 }).toBeGreaterThanOrEqual(4);
		await hub.untilParked(2);
	});

	test("comes back to a hub that was away, and says why it was not there", async () => {
		const first = await startRawHub();
		const { events } = await parkAt(first, 1);
		await hub.untilParked(1);
		await hub.close();
		await expect
			.poll(() => events.filter(({ event }) => event === "park_failed").length, { timeout: 5000 })
			.toBeGreaterThan(0);
		expect(events.find(({ event }) => event === "park_failed")).toMatchObject({
			error: { code: expect.stringMatching(/^(network|refused)$/) },
		});
		hub = await startRawHub({ port: first.port });
		parking.redial();
		await hub.untilParked(1);
	});

	test("knows a refusal of its key from a hub that is away, and keeps Retry-After", async () => {
		const refusals = [
			"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n",
		];
		const { events } = await parkAt(await startRawHub({ refuse: (asked) => refusals[asked] }), 1);
		await expect.poll(() => events.length, { timeout: 5000 }).toBe(2);
		const key = addressOf(scriptedIdentity(3).publicKey);
		expect(events[0]).toMatchObject({ error: { code: "auth", hint: `kvasir serve-hub --backbone-key ${key}` } });
		await expect(parking.first).rejects.toMatchObject({ code: "auth", message: expect.stringContaining(key) });
		expect(events[1]).toMatchObject({ error: { code: "network" }, retryMs: 30_000 });
		parking.redial();
		await hub.untilParked(1);
	});

	test("corrects its clock by the hub's and dials again", async () => {
		const ahead = Math.round(Date.now() / 1000) + 500;
		const skewed = `HTTP/1.1 401 Unauthorized\r\nX-Kvasir-Time: ${ahead}\r\nContent-Length: 0\r\n\r\n`;
		await parkAt(await startRawHub({ refuse: (asked) => (asked === 0 ? skewed : undefined) }), 1);
		await hub.untilParked(1);
		const times = hub.heads.map((head) => Number(/Kvasir1 [^.]+\.(\d+)\./.exec(head)![1]));
		expect(times[1]! - times[0]!).toBeGreaterThan(490);
	});

	test("the first connection is known; one of several is enough", async () => {
		const tooMany = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n";
		await parkAt(await startRawHub({ refuse: (asked) => (asked < 2 ? tooMany : undefined) }), 3);
		await parking.first;
		expect(parking.hub).toMatchObject({ host: "127.0.0.1" });
	});

	test("a port where nobody listens is told from a hub that refuses", async () => {
		const started = await startRawHub();
		await started.close();
		await parkAt(started, 2);
		await expect(parking.first).rejects.toMatchObject({ code: "refused", hint: expect.stringContaining("--relay") });
	});

	test("closing leaves no socket", async () => {
		await parkAt(await startRawHub(), 3);
		await hub.untilParked(3);
		await parking.close();
		await expect.poll(() => hub.parked.length).toBe(0);
		expect(parking.parked).toBe(0);
	});
});

describe("createRelayServer()", () => {
	test("refuses other paths and clients that do not speak the protocol", async () => {
		await parkAt(await startRawHub(), 2);
		await hub.untilParked(2);
		await expect(dialRelay(hub.port, "/v1/other")).rejects.toThrow("404");
		await expect(dialRelay(hub.port, "/v1/relay", ["chat"])).rejects.toThrow("426");
		await hub.untilParked(2);
	});
});
