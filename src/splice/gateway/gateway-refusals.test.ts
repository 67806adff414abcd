import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rawExchange, upgradeHead } from "../../../test/support/raw-http.ts";
import {
	anyPort,
	dialWorker,
	eventually,
	hubSecret,
	nextMessage,
	realParts,
	startSpliceSwarm,
	testKey,
	tokenFor,
	type WorkerRefused,
} from "../../../test/support/splice-swarm.ts";
import { spliceLimits } from "../limits.ts";
import { type Gateway, startGateway } from "./gateway.ts";

const refusedWith = (dialled: Promise<unknown>) =>
	dialled.then(
		() => {
			throw new Error("was not refused");
		},
		(error: WorkerRefused) => error,
	);

async function linkCount({ admin }: Gateway): Promise<number> {
	const status = await fetch(`http://127.0.0.1:${admin.port}/status`);
	return ((await status.json()) as { linkCount: number }).linkCount;
}

describe("the gateway refuses", () => {
	it.each<[status: number, what: string, (host: string) => string]>([
		[401, "no token", (host) => upgradeHead(host, {})],
		[401, "a malformed token", (host) => upgradeHead(host, { Authorization: "Kvasir1 x.y.z" })],
		[401, "another scheme", (host) => upgradeHead(host, { Authorization: "Basic eDp5" })],
		[401, "a token for another host", (host) => upgradeHead(host, { Authorization: tokenFor("evil.example") })],
		[
			401,
			"a token for another model",
			(host) => upgradeHead(host, { Authorization: tokenFor(host, { signedModel: "x" }) }),
		],
		[400, "a body", (host) => upgradeHead(host, { Authorization: tokenFor(host), "Content-Length": "3" })],
		[
			400,
			"a chunked body",
			(host) => upgradeHead(host, { Authorization: tokenFor(host), "Transfer-Encoding": "chunked" }),
		],
		[400, "a bad key", (host) => upgradeHead(host, { Authorization: tokenFor(host), "Sec-WebSocket-Key": "short" })],
		[426, "another subprotocol", (host) => upgradeHead(host, { "Sec-WebSocket-Protocol": "kvasir.v9" })],
		[426, "another version of WebSocket", (host) => upgradeHead(host, { "Sec-WebSocket-Version": "8" })],
		[426, "another upgrade", (host) => upgradeHead(host, { Upgrade: "h2c" })],
		[426, "no upgrade", (host) => upgradeHead(host, { Upgrade: null, Connection: "close" })],
		[404, "another path", (host) => upgradeHead(host, {}, { path: "/backbone?model=tiny" })],
		[404, "an unknown plain path", (host) => `GET /nothing HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`],
		[400, "a model's name with a slash", (host) => upgradeHead(host, {}, { path: "/v1/relay?model=a%2Fb" })],
		[400, "two models", (host) => upgradeHead(host, {}, { path: "/v1/relay?model=a&model=b" })],
		[414, "a long path", (host) => upgradeHead(host, {}, { path: `/v1/relay?model=${"a".repeat(600)}` })],
		[405, "another method", (host) => upgradeHead(host, {}, { method: "PUT" })],
		[431, "a flood of headers", (host) => upgradeHead(host, { "X-Flood": "a".repeat(20_000) })],
		[400, "what is not HTTP", () => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
	])("with %i: %s", async (status, _, head) => {
		await using swarm = await startSpliceSwarm({ backbone: { park: 1 } });
		const answer = await rawExchange(swarm.gateway.address, head(swarm.host));
		expect(answer.status).toBe(status);
		expect(swarm.backbone.requests).toHaveLength(0);
	});

	it("a token a second time", async () => {
		await using swarm = await startSpliceSwarm();
		const authorization = tokenFor(swarm.host);
		const worker = await dialWorker(swarm.host, { authorization });
		const { status } = await refusedWith(dialWorker(swarm.host, { authorization }));
		expect(status).toBe(401);
		worker.terminate();
	});

	it("a clock that is too far off, and says its own time", async () => {
		await using swarm = await startSpliceSwarm();
		const authorization = tokenFor(swarm.host, { offsetSeconds: -300 });
		const { status, headers } = await refusedWith(dialWorker(swarm.host, { authorization }));
		expect(status).toBe(401);
		expect(Math.abs(Number(headers["x-kvasir-time"]) - Date.now() / 1000)).toBeLessThan(5);
	});

	it("more upgrades than the rate admits, with a Retry-After of 1 to 30 s", async () => {
		await using swarm = await startSpliceSwarm({ gateway: { limits: { admitRatePerSecond: 0.01 } } });
		const dials = Array.from({ length: 6 }, (_, i) =>
			dialWorker(swarm.host, { authorization: tokenFor(swarm.host, { identity: testKey(i + 1) }) }),
		);
		const settled = await Promise.allSettled(dials);
		const refused = settled.filter((one) => one.status === "rejected").map(({ reason }) => reason as WorkerRefused);
		expect(settled.length - refused.length).toBe(1);
		for (const { status, headers } of refused) {
			expect(status).toBe(429);
			expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1);
			expect(Number(headers["retry-after"])).toBeLessThanOrEqual(30);
		}
	});

	it.each([
		["linksPerKeyMax", 1],
		["linksPerAddressMax", 1],
	])("more links than %s, and admits again once one has ended", async (limit, max) => {
		await using swarm = await startSpliceSwarm({ gateway: { limits: { [limit]: max } } });
		const first = await dialWorker(swarm.host);
		expect((await refusedWith(dialWorker(swarm.host))).status).toBe(429);
		first.terminate();
		await eventually("the gateway saw the link end", async () => (await linkCount(swarm.gateway)) === 0);
		const second = await dialWorker(swarm.host);
		second.terminate();
	});

	it("a request head that takes too long", async () => {
		await using swarm = await startSpliceSwarm({ gateway: { limits: { headMs: 200 } } });
		const answer = await rawExchange(swarm.gateway.address, "GET /v1/relay HTTP/1.1\r\nHost: x\r\nX-Slow: ");
		expect(answer.status).toBe(408);
	});

	it("with 503 and a Retry-After while the hub is down", async () => {
		const gateway = await startGateway(
			{
				listen: anyPort,
				admin: anyPort,
				certificate: null,
				publicHosts: [],
				hub: { host: "127.0.0.1", port: 1 },
				hubSecret,
			},
			realParts,
		);
		const host = `127.0.0.1:${gateway.address.port}`;
		const { status, headers } = await refusedWith(dialWorker(host));
		expect(status).toBe(503);
		expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1);
		expect(Number(headers["retry-after"])).toBeLessThanOrEqual(spliceLimits.retryAfterAwaySecondsMax);
		await gateway.close();
	});

	it("with 502 when its secret is not the hub's", async () => {
		await using swarm = await startSpliceSwarm({ gateway: { hubSecret: new Uint8Array(32).fill(1) } });
		expect((await refusedWith(dialWorker(swarm.host))).status).toBe(502);
		expect(swarm.backbone.requests).toHaveLength(0);
	});
});

describe("the gateway's splice", () => {
	it("hands nothing to the hub of a request smuggled behind a refused upgrade", async () => {
		await using swarm = await startSpliceSwarm();
		const second = `GET /v1/slices/${"0".repeat(64)} HTTP/1.1\r\nHost: hub\r\nX-Kvasir-Key: forged\r\n\r\n`;
		const answer = await rawExchange(swarm.gateway.address, upgradeHead(swarm.host, {}) + second);
		expect(answer.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
		expect(swarm.backbone.requests).toHaveLength(0);
	});

	it("carries bytes behind an admitted upgrade to the backbone alone, as the worker's stream", async () => {
		await using swarm = await startSpliceSwarm();
		const second = "GET /backbone?model=tiny HTTP/1.1\r\nHost: hub\r\nX-Kvasir-Key: forged\r\n\r\n";
		const head = upgradeHead(swarm.host, { Authorization: tokenFor(swarm.host) });
		const answer = await rawExchange(swarm.gateway.address, head + second);
		// One head; then what the backbone's WebSocket says to bytes that are no frame: a close.
		expect(answer.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
		expect(answer.status).toBe(101);
		expect(swarm.backbone.requests).toHaveLength(1);
	});

	it("drops every X-Kvasir header from outside, and all others it does not know", async () => {
		await using swarm = await startSpliceSwarm();
		const forged = {
			"X-Kvasir-Key": "forged",
			"X-Kvasir-Relay": "forged",
			"X-Kvasir-Peer": "6.6.6.6",
			"X-Forwarded-For": "6.6.6.6",
			Cookie: "a=b",
		};
		const worker = await dialWorker(swarm.host, { headers: forged });
		const { headers } = swarm.backbone.requests[0]!;
		expect(JSON.stringify(headers)).not.toMatch(/forged|6\.6\.6\.6|a=b/);
		expect(Object.keys(headers).sort()).toEqual([
			"connection",
			"host",
			"sec-websocket-key",
			"sec-websocket-protocol",
			"sec-websocket-version",
			"upgrade",
			"x-kvasir-key",
			"x-kvasir-peer",
			"x-kvasir-relay",
		]);
		worker.terminate();
	});

	it("outlives random bytes, before and after an upgrade, while another link works on", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		await fc.assert(
			fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.boolean(), async (bytes, upgraded) => {
				const head = upgraded ? upgradeHead(swarm.host, { Authorization: tokenFor(swarm.host) }) : "";
				await rawExchange(swarm.gateway.address, Buffer.concat([Buffer.from(head), bytes]), { ms: 100 });
				worker.send(bytes);
				expect(Buffer.from(bytes).equals(await nextMessage(worker))).toBe(true);
			}),
			{ numRuns: 20 },
		);
		worker.terminate();
	});
});
