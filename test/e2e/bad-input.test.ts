import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { WebSocketServer } from "ws";
import { systemClock } from "../../src/io/clock.ts";
import { subprotocol } from "../../src/protocol/messages.ts";
import type { Child } from "../../src/swarm/child.ts";
import { startChild } from "../../src/swarm/child.ts";
import { listeningPortsOf } from "../support/leaks.ts";
import { startPart } from "../support/part-processes.ts";
import { cleanEnv, cliPath, runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { backboneHome, testSwarm } from "../support/test-swarm.ts";
import { until } from "../support/until.ts";

const upgrade = (path: string, headers = "") =>
	`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: ${subprotocol}\r\n${headers}\r\n`;

/** What strangers send to an open port. */
const nonsense: readonly (readonly [name: string, bytes: string | Buffer])[] = [
	["nothing at all", ""],
	["zeros", Buffer.alloc(70_000)],
	["a TLS hello", Buffer.from("16030100050100000100", "hex")],
	["a PNG", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")],
	["half a request", "GET /v1/relay HT"],
	["a header without end", `GET /v1/relay HTTP/1.1\r\nX: ${"a".repeat(100_000)}`],
	["a thousand headers", `GET / HTTP/1.1\r\n${"A: b\r\n".repeat(1000)}\r\n`],
	["a path of 64 KiB", `GET /${"x".repeat(65_536)} HTTP/1.1\r\nHost: x\r\n\r\n`],
	["two lengths", "POST /receipts HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"],
	[
		"length and chunks",
		"POST /receipts HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	],
	["an upgrade without authorization", upgrade("/v1/relay")],
	["an upgrade with a made-up authorization", upgrade("/v1/relay", "Authorization: Kvasir1 a.1.b.c\r\n")],
	["an upgrade with a request behind it", `${upgrade("/v1/relay")}GET /ledger/entries HTTP/1.1\r\nHost: hub\r\n\r\n`],
	["an upgrade with our own headers", upgrade("/v1/relay", "X-Kvasir-Key: 11111111111111111111111111111111\r\n")],
	[
		"a park without authorization",
		"GET /backbone?model=tiny HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: kvasir-park\r\n\r\n",
	],
	["a receipt from nobody", "POST /receipts HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"],
];

/** Sends bytes to a port and reads whatever comes until the other side closes, or a second passes. */
function send(port: number, bytes: string | Buffer): Promise<string> {
	const socket = connect(port, "127.0.0.1");
	let answer = "";
	socket.on("error", () => {});
	socket.on("data", (chunk) => {
		answer += chunk.toString("latin1");
	});
	socket.once("connect", () => socket.write(bytes));
	return new Promise((resolve) => {
		const timer = setTimeout(() => socket.destroy(), 1000);
		socket.once("close", () => {
			clearTimeout(timer);
			resolve(answer);
		});
	});
}

function isAlive({ pid }: Child): boolean {
	try {
		return process.kill(pid, 0);
	} catch {
		return false;
	}
}

describe("strangers at open ports", () => {
	it("get a refusal, and nothing else stops", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home, { workers: [{ hold: ["all:all"] }] });
		const words = ["--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "--wait", "0"];
		const listener = await startPart(home, "listener", ["backbone", "dispatch", ...words]);
		await listener.events.waitFor(({ event }) => event === "api", 10_000);
		const processes = [swarm.hub, swarm.gateway, listener];
		const ports = (await Promise.all(processes.map(({ pid }) => listeningPortsOf(pid)))).flat();
		// Relay and API of the hub; public and admin of the gateway; dispatch and API of the backbone.
		expect(ports).toHaveLength(6);
		expect(await listeningPortsOf(swarm.workers[0]!.pid)).toEqual([]);
		const answers = await Promise.all(
			ports.flatMap((port) => nonsense.map(async ([name, bytes]) => ({ port, name, answer: await send(port, bytes) }))),
		);
		for (const { port, name, answer } of answers) {
			// The dispatch listener lets anybody upgrade: who they are is asked in the handshake, inside.
			const refused = port === listener.listening.port ? /HTTP\/1.1 (2\d\d|500)/ : /HTTP\/1.1 (101|2\d\d|500)/;
			expect(`${name}: ${answer.split("\r\n")[0]}`).not.toMatch(refused);
			expect(answer).not.toContain('"entries"');
		}
		for (const child of [...processes, swarm.workers[0]!]) expect(isAlive(child)).toBe(true);
		const backbone = await swarm.startBackbone(backboneHome(home), [
			"--prompt",
			"The capital of France is",
			"--tokens",
			"4",
			"--wait",
			"30",
			"--require-remote",
		]);
		const done = await backbone.events.waitFor(({ event }) => event === "done", 60_000);
		expect(done).toMatchObject({ answers: [{ text: " Paris." }], remote: { fallback: 0 } });
	});
});

/** A gateway that admits everybody and then says `message`. */
async function falseGateway(
	message: (send: (data: Buffer | string) => void, close: (bytes: Buffer) => void) => void,
): Promise<{ server: Server; closes: number[] }> {
	const server = createServer();
	const sockets = new WebSocketServer({ server, handleProtocols: () => subprotocol });
	const closes: number[] = [];
	sockets.on("connection", (socket, request) => {
		socket.on("error", () => {});
		socket.on("close", (code) => closes.push(code));
		socket.once("message", () =>
			message(
				(data) => socket.send(data),
				(bytes) => void request.socket.write(bytes),
			),
		);
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		for (const socket of sockets.clients) socket.terminate();
		server.close();
	});
	return { server, closes };
}

describe("a worker that dials a false gateway", () => {
	it.each<[string, (send: (data: Buffer | string) => void, raw: (bytes: Buffer) => void) => void, number]>([
		["text", (send) => send("hello"), 1003],
		["bytes that are no msgpack", (send) => send(Buffer.from("c1c1c1", "hex")), 4400],
		["an array of another kind", (send) => send(Buffer.from("93cd03e70102", "hex")), 4400],
		["a welcome before any challenge", (send) => send(Buffer.from("9303c40100c40100", "hex")), 4400],
		["a message larger than a handshake may be", (send) => send(Buffer.alloc(40_000)), 1009],
		["a broken frame", (_send, raw) => raw(Buffer.from("ffffffffffffffff", "hex")), 1002],
	])("that sends %s: closes the link, says why, and goes on dialling", async (_name, message, code) => {
		const home = await temporaryHome();
		const { server, closes } = await falseGateway(message);
		const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
		const setting = { execPath: process.execPath, cliPath, env: cleanEnv(), clock: systemClock };
		const worker = await startChild("worker", ["join", url, "--hold", "0:0-0", "--home", home], setting);
		onTestFinished(() => worker.stop());
		const told = await worker.events.waitFor(({ event }) => event === "disconnected", 20_000);
		expect(told.message).toMatch(/^(Cannot|the connection ended)/);
		expect(told.redialInMs).toBeGreaterThan(0);
		await until(() => closes.length > 0, "the close");
		expect([code, 1006]).toContain(closes[0]);
		expect(isAlive(worker)).toBe(true);
	});
});

describe("kvasir model inspect", () => {
	it.each(["/dev/null", "/", "package.json"])("refuses %s with a typed error", async (path) => {
		const { code, json } = await runCli(["model", "inspect", path, "--json"]);
		expect(code).toBe(8);
		expect(json().error?.code).toMatch(/^(bad_gguf|bad_file|model_missing)$/);
	});
});
