import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { backboneIdentity, helloFacts, workerIdentity } from "../../test/support/link-pair.ts";
import { bytes, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import type { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import { systemClock } from "../io/clock.ts";
import { openOutbound } from "../io/outbound.ts";
import { systemRandom } from "../io/random.ts";
import { checkAuthorization } from "../protocol/authorization.ts";
import { acceptHandshake, dialHandshake } from "../protocol/handshake.ts";
import { createNonceCache } from "../protocol/nonce-cache.ts";
import { webSocketOptions, webSocketTransport } from "../protocol/websocket-transport.ts";
import { webSocketDialer } from "./dialer.ts";
import { joinTarget } from "./join-target.ts";

const closing: (() => void)[] = [];
afterEach(() => {
	for (const close of closing.splice(0)) close();
});

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<string> {
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	closing.push(() => server.close());
	return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const parts = { identity: workerIdentity, clock: systemClock, random: systemRandom };

/** A server that answers every upgrade with the same HTTP head. */
async function answering(head: string): Promise<{ url: string; requests: IncomingMessage[] }> {
	const requests: IncomingMessage[] = [];
	const server = createServer();
	server.on("upgrade", (request, socket) => {
		requests.push(request);
		socket.on("error", () => {});
		socket.end(`HTTP/1.1 ${head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
	});
	return { url: await listening(server), requests };
}

const failure = (url: string, change = {}): Promise<KvasirError> =>
	webSocketDialer({ ...parts, url, ...change })({}).then(
		() => {
			throw new Error("connected");
		},
		(error: KvasirError) => error,
	);

describe("webSocketDialer()", () => {
	it("signs in, names the model and the backbone, and carries a handshake", async () => {
		const server = createServer();
		const url = await listening(server);
		const nonces = createNonceCache(systemClock);
		const sockets = new WebSocketServer({ noServer: true, ...webSocketOptions });
		const seen: unknown[] = [];
		server.on("upgrade", (request, socket, head) => {
			const host = new URL(url).host;
			const subject = { label: "kvasir/1 relay", host, model: "tiny" } as const;
			seen.push(
				request.url,
				checkAuthorization(request.headers.authorization, subject, { clock: systemClock, nonces }).ok,
			);
			sockets.handleUpgrade(request, socket, head, (ws) => {
				seen.push(ws.protocol);
				acceptHandshake(webSocketTransport(ws, socket as Socket), {
					...parts,
					identity: backboneIdentity,
					welcome: () => sampleWelcomeBody,
				}).catch(() => {});
			});
		});
		const transport = await webSocketDialer({ ...parts, url, model: "tiny" })({ backbone: bytes(32, 9) });
		const { link } = await dialHandshake(transport, { ...parts, hello: helloFacts() });
		expect(seen).toEqual([`/v1/relay?model=tiny&backbone=${addressOf(bytes(32, 9))}`, true, "kvasir.v1"]);
		link.close(1000, "");
		await link.ended;
	});

	it.each([
		["401 Unauthorized", "network", 0],
		["403 Forbidden", "network", 0],
		["407 Proxy Authentication Required", "proxy", 0],
		["426 Upgrade Required", "version", 0],
		["429 Too Many Requests\r\nRetry-After: 17", "refused", 17_000],
		["502 Bad Gateway", "refused", 0],
		["503 Service Unavailable\r\nRetry-After: 3", "refused", 3_000],
		["503 Service Unavailable\r\nRetry-After: soon", "refused", 0],
		["302 Found\r\nLocation: http://127.0.0.1/", "network", 0],
		["404 Not Found", "network", 0],
	])("says what %s means", async (head, code, retryAfterMs) => {
		const { url } = await answering(head);
		const error = await failure(url);
		expect([error.code, error.facts.retryAfterMs]).toEqual([code, retryAfterMs]);
		expect(error.hint).toBeTruthy();
	});

	it("gives up a proxy that takes the connection and says nothing", async () => {
		const proxy = createTcpServer((socket) => socket.on("error", () => {}));
		const where = await listening(proxy);
		const outbound = openOutbound(new URL("wss://gate.example"), { env: { HTTPS_PROXY: where.replace("ws", "http") } });
		closing.push(() => void outbound.close());
		const clock = { ...systemClock, after: (ms: number, fn: () => void) => systemClock.after(ms / 100, fn) };
		expect(await failure("wss://gate.example", { outbound, clock })).toMatchObject({
			code: "proxy",
			message: expect.stringContaining("no answer"),
		});
	});

	it("tries once more with the gateway's time when its own clock is wrong, and warns", async () => {
		const clock = fakeClock();
		const serverClock = fakeClock(clock.now() + 500_000);
		const server = createServer();
		const url = await listening(server);
		const sockets = new WebSocketServer({ noServer: true, ...webSocketOptions });
		const nonces = createNonceCache(serverClock);
		const reasons: string[] = [];
		server.on("upgrade", (request, socket, head) => {
			const subject = { label: "kvasir/1 relay", host: new URL(url).host, model: "" } as const;
			const check = checkAuthorization(request.headers.authorization, subject, { clock: serverClock, nonces });
			reasons.push(check.ok ? "ok" : check.reason);
			socket.on("error", () => {});
			if (check.ok) sockets.handleUpgrade(request, socket, head, (ws) => closing.push(() => ws.terminate()));
			else {
				const time = Math.floor(serverClock.now() / 1000);
				socket.end(`HTTP/1.1 401 Unauthorized\r\nX-Kvasir-Time: ${time}\r\nContent-Length: 0\r\n\r\n`);
			}
		});
		const warned: number[] = [];
		const dial = webSocketDialer({ ...parts, clock, url, onClockSkew: (seconds) => warned.push(seconds) });
		(await dial({})).terminate();
		(await dial({})).terminate();
		expect(reasons).toEqual(["skew", "ok", "ok"]);
		expect(warned).toEqual([500]);
	});

	it("does not try a third time", async () => {
		const { url, requests } = await answering("401 Unauthorized\r\nX-Kvasir-Time: 1000");
		expect((await failure(url)).code).toBe("clock_skew");
		expect(requests).toHaveLength(2);
	});

	it("tells DNS, TCP and TLS apart", async () => {
		const plain = createTcpServer((socket) => socket.on("error", () => {}).end("220 not TLS\r\n"));
		const closed = createTcpServer();
		const refused = await listening(closed);
		closing.pop()!();
		await once(closed, "close");
		expect((await failure(refused)).code).toBe("refused");
		expect((await failure((await listening(plain)).replace("ws:", "wss:"))).code).toBe("tls");
		expect((await failure("wss://no-such-host.invalid")).code).toBe("dns");
	});

	it("stops at the signal", async () => {
		const silent = createTcpServer((socket) => {
			closing.push(() => socket.destroy());
		});
		const url = await listening(silent);
		const aborter = new AbortController();
		const dialling = webSocketDialer({ ...parts, url })({ signal: aborter.signal });
		await once(silent, "connection");
		aborter.abort(new Error("stop"));
		await expect(dialling).rejects.toThrow("stop");
	});
});

describe("joinTarget()", () => {
	it("reads gateway and pinned key", () => {
		const key = addressOf(bytes(32, 3));
		expect(joinTarget(`wss://gate.example/#${key}`)).toEqual({
			url: "wss://gate.example",
			gateway: "gate.example",
			backbone: bytes(32, 3),
		});
		expect(joinTarget("wss://gate.example:8443").gateway).toBe("gate.example:8443");
	});

	it("allows ws:// to loopback only, unless told otherwise", () => {
		for (const url of ["ws://127.0.0.1:1", "ws://localhost", "ws://[::1]:80"])
			expect(joinTarget(url).url).toContain("ws:");
		for (const url of [
			"ws://gate.example",
			"ws://127.0.0.1.evil.example",
			"https://gate.example",
			"gate.example",
			"",
		]) {
			expect(() => joinTarget(url)).toThrow(expect.objectContaining({ code: "usage" }));
		}
		expect(joinTarget("ws://192.168.1.5", true).gateway).toBe("192.168.1.5");
		expect(() => joinTarget("wss://gate.example#abc")).toThrow(expect.objectContaining({ code: "bad_key" }));
	});
});
