import net from "node:net";
import { describe, expect, it } from "vitest";
import { parkSocket, startParkedBackbone } from "../../../test/support/parked-backbone.ts";
import { rawExchange } from "../../../test/support/raw-http.ts";
import {
	anyPort,
	dialWorker,
	eventually,
	hubSecret,
	model,
	nextMessage,
	realParts,
	relayRows,
	startSpliceSwarm,
	testKey,
} from "../../../test/support/splice-swarm.ts";
import { addressOf } from "../../io/base58.ts";
import { signAuthorization } from "../../protocol/authorization.ts";
import { signRequest } from "../../protocol/request-authorization.ts";
import { hubRequest } from "../hub-request.ts";
import { spliceLimits } from "../limits.ts";
import { startHub } from "./hub.ts";

const backboneKey = testKey(200);
const { clock, random } = realParts;
const headOf = (target: string, headers: readonly (readonly [string, string])[]) =>
	`${[`GET ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`;
const admitted = { key: testKey(1).publicKey, peer: "10.0.0.9", websocketKey: "dGhlIHNhbXBsZSBub25jZQ==" };

async function startTestHub() {
	const hub = await startHub(
		{
			relay: anyPort,
			api: anyPort,
			secret: hubSecret,
			backboneKeys: [addressOf(backboneKey.publicKey)],
			ledgerId: "abc",
		},
		{ ...realParts, relays: relayRows() },
	);
	return Object.assign(hub, { [Symbol.asyncDispose]: () => hub.close() });
}

describe("the hub's relay port", () => {
	it("answers a parked connection with its API's port and its ledger", async () => {
		await using hub = await startTestHub();
		const authorization = signAuthorization(
			{ label: "kvasir/1 park", host: "abc", model },
			{ identity: backboneKey, clock, random },
		);
		const socket = net.connect(hub.relay);
		socket.write(
			headOf("/backbone?model=tiny", [
				["Host", "hub"],
				["Connection", "Upgrade"],
				["Upgrade", "kvasir-park"],
				["Authorization", authorization],
			]),
		);
		const answer = String(await new Promise((resolve) => socket.once("data", resolve)));
		expect(answer).toBe(
			`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: kvasir-park\r\nX-Kvasir-Api: ${hub.api.port}\r\nX-Kvasir-Ledger: abc\r\n\r\n`,
		);
		socket.destroy();
	});

	it("refuses to park a key that is not listed, and more than one backbone may", async () => {
		await using hub = await startTestHub();
		await expect(parkSocket({ hub: hub.relay, identity: testKey(66), model })).rejects.toThrow("403");
		const parked = [];
		for (let i = 0; i < spliceLimits.parkedPerBackboneMax; i++) {
			parked.push(await parkSocket({ hub: hub.relay, identity: backboneKey, model }));
		}
		await expect(parkSocket({ hub: hub.relay, identity: backboneKey, model })).rejects.toThrow("429");
		for (const socket of parked) socket.destroy();
	});

	it.each<[what: string, (head: [string, string][]) => [string, string][]]>([
		["without a signature", (head) => head.filter(([name]) => name !== "Authorization")],
		[
			"with another worker's key",
			(head) =>
				head.map(([name, value]) =>
					name === "X-Kvasir-Key" ? [name, addressOf(testKey(2).publicKey)] : [name, value],
				),
		],
		[
			"with another address",
			(head) => head.map(([name, value]) => (name === "X-Kvasir-Peer" ? [name, "6.6.6.6"] : [name, value])),
		],
		[
			"with another WebSocket key",
			(head) =>
				head.map(([name, value]) =>
					name === "Sec-WebSocket-Key" ? [name, "AAAAAAAAAAAAAAAAAAAAAA=="] : [name, value],
				),
		],
	])("refuses an upgrade %s", async (_, change) => {
		await using hub = await startTestHub();
		const { target, headers } = hubRequest("/v1/relay?model=tiny", admitted, { secret: hubSecret, clock, random });
		const answer = await rawExchange(hub.relay, headOf(target, change(headers as [string, string][])));
		expect(answer.status).toBe(401);
	});

	it("refuses an upgrade signed with another secret, by a key, or a second time", async () => {
		await using hub = await startTestHub();
		await using backbone = Object.assign(await startParkedBackbone({ hub: hub.relay, identity: backboneKey, model }), {
			async [Symbol.asyncDispose]() {
				await backbone.close();
			},
		});
		const wrong = hubRequest("/v1/relay", admitted, { secret: new Uint8Array(32), clock, random });
		expect((await rawExchange(hub.relay, headOf(wrong.target, wrong.headers))).status).toBe(401);
		const facts = [addressOf(admitted.key), admitted.peer, admitted.websocketKey, ""];
		const byKey = signRequest({ method: "GET", path: "/v1/relay", facts }, { identity: testKey(1) }, { clock, random });
		const signed = wrong.headers.map(([name, value]) => [name, name === "Authorization" ? byKey : value] as const);
		expect((await rawExchange(hub.relay, headOf("/v1/relay", signed))).status).toBe(401);
		const good = hubRequest("/v1/relay", admitted, { secret: hubSecret, clock, random });
		expect((await rawExchange(hub.relay, headOf(good.target, good.headers), { ms: 200 })).status).toBe(101);
		expect((await rawExchange(hub.relay, headOf(good.target, good.headers))).status).toBe(401);
		expect(backbone.requests).toHaveLength(1);
	});

	it("drops a parked connection that speaks or ends, and serves from the others", async () => {
		await using swarm = await startSpliceSwarm();
		const talkative = await parkSocket({ hub: swarm.hub.relay, identity: backboneKey, model });
		const gone = await parkSocket({ hub: swarm.hub.relay, identity: backboneKey, model });
		const ended = Promise.all([talkative, gone].map((socket) => new Promise((resolve) => socket.once("end", resolve))));
		for (const socket of [talkative, gone]) socket.resume();
		talkative.write("hello?");
		gone.end();
		await ended;
		for (const socket of [talkative, gone]) socket.destroy();
		const worker = await dialWorker(swarm.host);
		worker.terminate();
	});

	it("lets a worker wait for a parked connection", async () => {
		await using swarm = await startSpliceSwarm({ backbone: { park: 0 } });
		const dialling = dialWorker(swarm.host);
		const late = await startParkedBackbone({ hub: swarm.hub.relay, identity: backboneKey, model, park: 1 });
		const worker = await dialling;
		worker.send("x");
		await nextMessage(worker);
		worker.terminate();
		await late.close();
	});

	it("sends a worker to the backbone it names", async () => {
		const other = testKey(201);
		await using swarm = await startSpliceSwarm({
			hub: { backboneKeys: [addressOf(backboneKey.publicKey), addressOf(other.publicKey)] },
		});
		const second = await startParkedBackbone({ hub: swarm.hub.relay, identity: other, model });
		const named = await dialWorker(swarm.host, { path: `/v1/relay?model=tiny&backbone=${addressOf(other.publicKey)}` });
		expect([swarm.backbone.requests.length, second.requests.length]).toEqual([0, 1]);
		const any = await dialWorker(swarm.host);
		expect([swarm.backbone.requests.length, second.requests.length]).toEqual([1, 1]);
		named.terminate();
		any.terminate();
		await second.close();
	});

	it("dials a listening backbone instead, when told to", async () => {
		// Any listening port will do that speaks WebSocket: here another swarm's gateway-less hub is not needed, a plain server is.
		const { WebSocketServer } = await import("ws");
		const server = new WebSocketServer({
			port: 0,
			host: "127.0.0.1",
			handleProtocols: () => "kvasir.v1",
			perMessageDeflate: false,
		});
		await new Promise((resolve) => server.once("listening", resolve));
		server.on("connection", (socket) => socket.on("message", (message) => socket.send(message)));
		const { port } = server.address() as net.AddressInfo;
		await using swarm = await startSpliceSwarm({
			hub: { dispatch: { host: "127.0.0.1", port } },
			backbone: { park: 0 },
		});
		const worker = await dialWorker(swarm.host);
		worker.send("dialled");
		expect(String(await nextMessage(worker))).toBe("dialled");
		worker.terminate();
		await eventually("the relay is stored", () =>
			[...swarm.relays.rows.values()].some((row) => row.bytesFromWorker > 0),
		);
		server.close();
	});
});

describe("the hub's API port", () => {
	it("tells health and metrics to anyone, status to the gateway alone", async () => {
		await using swarm = await startSpliceSwarm();
		const origin = `http://127.0.0.1:${swarm.hub.api.port}`;
		expect(await (await fetch(`${origin}/health`)).json()).toEqual({ status: "ok" });
		const worker = await dialWorker(swarm.host);
		const metrics = await (await fetch(`${origin}/metrics`)).text();
		expect(metrics).toContain('kvasir_hub_requests_total{outcome="relayed"} 1');
		expect(metrics).toContain("kvasir_hub_relays 1");
		expect(metrics).toMatch(/kvasir_hub_parked\{model="tiny",backbone="\w+"\} 2/);
		expect((await fetch(`${origin}/status`)).status).toBe(401);
		const byKey = signRequest({ method: "GET", path: "/status" }, { identity: backboneKey }, { clock, random });
		expect((await fetch(`${origin}/status`, { headers: { authorization: byKey } })).status).toBe(403);
		const bySecret = signRequest({ method: "GET", path: "/status" }, { secret: hubSecret }, { clock, random });
		const status = await fetch(`${origin}/status`, { headers: { authorization: bySecret } });
		expect(await status.json()).toMatchObject({ relayCount: 1, waiting: 0 });
		worker.terminate();
	});
});
