import net, { type AddressInfo, type Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/support/long.ts";
import { parkSocket } from "../../../test/support/parked-backbone.ts";
import { rawExchange } from "../../../test/support/raw-http.ts";
import {
	anyPort,
	dialWorker,
	eventually,
	hubSecret,
	nextMessage,
	realParts,
	startSpliceSwarm,
	testKey,
} from "../../../test/support/splice-swarm.ts";
import { spliceLimits } from "../limits.ts";
import { startGateway } from "./gateway.ts";

const accepting = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";

describe("a worker is told nothing of what is wrong inside", () => {
	it.each([
		[
			"an accept for another key",
			`${accepting}Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: kvasir.v1\r\n\r\n`,
			502,
		],
		["no accept", `${accepting}\r\n`, 502],
		["a page", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret", 502],
		["a redirect", "HTTP/1.1 302 Found\r\nLocation: http://inside/\r\nContent-Length: 0\r\n\r\n", 502],
		["what is not HTTP", "SSH-2.0-secret\r\n", 503],
		["nothing, and closes", "", 503],
	])("when the hub answers with %s", async (_, text, status) => {
		const hub = net.createServer((socket) => {
			socket.on("error", () => {});
			socket.once("data", () => socket.end(text));
		});
		await new Promise<void>((resolve) => hub.listen(0, "127.0.0.1", resolve));
		const options = { listen: anyPort, admin: anyPort, certificate: null, publicHosts: [], hubSecret };
		const gateway = await startGateway(
			{ ...options, hub: { host: "127.0.0.1", port: (hub.address() as AddressInfo).port } },
			realParts,
		);
		const refused = await dialWorker(`127.0.0.1:${gateway.address.port}`).catch((error) => error);
		expect(refused.status).toBe(status);
		expect(JSON.stringify(refused.headers)).not.toMatch(/secret|inside/);
		await gateway.close();
		hub.close();
	});

	it.each([
		[
			"an accept for another key",
			`${accepting}Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: kvasir.v1\r\n\r\n`,
		],
		["a refusal", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"],
		["what is not HTTP", "hello\r\n\r\n"],
	])("when the backbone answers with %s", async (_, text) => {
		await using swarm = await startSpliceSwarm({ backbone: { park: 0 } });
		const socket = await parkSocket({ hub: swarm.hub.relay, identity: testKey(200), model: "tiny" });
		const ended = new Promise((resolve) => socket.once("end", resolve));
		socket.once("data", () => socket.write(text));
		await expect(dialWorker(swarm.host)).rejects.toMatchObject({ status: 503 });
		await ended;
		socket.destroy();
	});
});

describe("the hub", () => {
	it("tries another parked connection when one turns out to be dead", async () => {
		await using swarm = await startSpliceSwarm({ backbone: { park: 1 } });
		// Newest first: this one is taken, and closes on the first byte.
		const dying = await parkSocket({ hub: swarm.hub.relay, identity: testKey(200), model: "tiny" });
		dying.once("data", () => dying.resetAndDestroy());
		const worker = await dialWorker(swarm.host);
		worker.send("alive");
		expect(String(await nextMessage(worker))).toBe("alive");
		worker.terminate();
	});

	it("outlives random bytes on its relay port, on parked connections and on its API, while a link works on", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		await fc.assert(
			fc.asyncProperty(
				fc.uint8Array({ minLength: 1, maxLength: 300 }),
				fc.integer({ min: 0, max: 2 }),
				async (bytes, where) => {
					if (where === 2) {
						const parked = await parkSocket({ hub: swarm.hub.relay, identity: testKey(200), model: "tiny" });
						const ended = new Promise((resolve) => parked.once("end", resolve));
						parked.on("error", () => {});
						parked.resume().write(bytes);
						await ended;
						parked.destroy();
					} else await rawExchange(where === 0 ? swarm.hub.relay : swarm.hub.api, bytes, { ms: 60 });
					worker.send(bytes);
					expect(Buffer.from(bytes).equals(await nextMessage(worker))).toBe(true);
				},
			),
			{ numRuns: runs(20, 2_000) },
		);
		worker.terminate();
	});
});

describe("the gateway", () => {
	it("closes what one address opens beyond its bound, and serves others and its links", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		const open: Socket[] = [];
		let closed = 0;
		for (let i = 0; i < spliceLimits.unadmittedPerAddressMax + 20; i++) {
			const socket = net.connect(swarm.gateway.address);
			socket.on("error", () => {});
			socket.on("close", () => closed++);
			open.push(socket);
		}
		await eventually("those beyond the bound are closed", () => closed >= 20);
		worker.send("still here");
		expect(String(await nextMessage(worker))).toBe("still here");
		for (const socket of open) socket.destroy();
		await eventually("all are closed", () => closed === open.length);
		worker.terminate();
	});

	it("limits what one address asks of its own routes", async () => {
		await using swarm = await startSpliceSwarm();
		const asks = Array.from({ length: spliceLimits.attemptBurst * 3 }, () => fetch(`http://${swarm.host}/v1/nothing`));
		const statuses = (await Promise.all(asks)).map(({ status }) => status);
		expect(new Set(statuses)).toEqual(new Set([404, 429]));
	});
});
