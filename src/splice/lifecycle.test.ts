import { describe, expect, it } from "vitest";
import {
	anyPort,
	dialWorker,
	eventually,
	hubSecret,
	nextMessage,
	realParts,
	relayRows,
	startSpliceSwarm,
	testKey,
} from "../../test/support/splice-swarm.ts";
import { addressOf } from "../io/base58.ts";
import type { KeyPair } from "../io/crypto.ts";
import { signRequest } from "../protocol/request-authorization.ts";
import type { Admission } from "./gateway/admission.ts";
import { startGateway } from "./gateway/gateway.ts";
import { startHub } from "./hub/hub.ts";

const sockets = () => process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP"));

describe("gateway and hub", () => {
	it("leave no socket behind, with links open, half open and being opened", async () => {
		const before = sockets().length;
		const swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		worker.on("error", () => {});
		const closed = new Promise((resolve) => worker.once("close", resolve));
		const waiting = dialWorker(swarm.host, { path: "/v1/relay?model=other" }).catch(() => null);
		await swarm[Symbol.asyncDispose]();
		await closed;
		await waiting;
		await eventually("all sockets are closed", () => sockets().length <= before);
	});

	it("close promptly, and stored what every relay carried", async () => {
		const swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		worker.on("error", () => {});
		worker.send(Buffer.alloc(100));
		await nextMessage(worker);
		await swarm[Symbol.asyncDispose]();
		expect([...swarm.relays.rows.values()]).toMatchObject([{ bytesFromWorker: 106, bytesToWorker: 102 }]);
	});

	it("drain: nothing new is admitted, the live link goes on until it ends", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		const draining = swarm.gateway.drain(10_000);
		expect((await fetch(`http://127.0.0.1:${swarm.gateway.admin.port}/health`)).status).toBe(503);
		await expect(dialWorker(swarm.host)).rejects.toThrow();
		worker.send("still here");
		expect(String(await nextMessage(worker))).toBe("still here");
		worker.terminate();
		await draining;
		// The address is free for the next process, while this one drains.
		const next = await startGateway(
			{
				listen: swarm.gateway.address,
				admin: anyPort,
				certificate: null,
				publicHosts: [],
				hub: swarm.hub.relay,
				hubSecret,
			},
			realParts,
		);
		(await dialWorker(swarm.host)).terminate();
		await next.close();
	});

	it("work again when the hub was restarted: the backbone parks again, workers come again", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		worker.on("error", () => {});
		const closed = new Promise((resolve) => worker.once("close", resolve));
		await swarm.hub.close();
		await closed;
		await expect(dialWorker(swarm.host)).rejects.toMatchObject({ status: 503 });
		const hub = await startHub(
			{
				relay: swarm.hub.relay,
				api: anyPort,
				secret: hubSecret,
				backboneKeys: [addressOf(testKey(200).publicKey)],
				ledgerId: "test-ledger",
			},
			{ ...realParts, relays: relayRows() },
		);
		const again = await dialWorker(swarm.host);
		again.send("again");
		expect(String(await nextMessage(again))).toBe("again");
		again.terminate();
		await hub.close();
	});

	it("keep all other links when one worker is reset, stalls, or sends without reading", async () => {
		await using swarm = await startSpliceSwarm();
		const [good, reset, greedy] = await Promise.all([1, 2, 3].map(() => dialWorker(swarm.host)));
		for (const socket of [reset!, greedy!]) socket.on("error", () => {});
		greedy!.pause();
		for (let i = 0; i < 32; i++) greedy!.send(Buffer.alloc(1 << 20));
		(reset as unknown as { _socket: { resetAndDestroy(): void } })._socket.resetAndDestroy();
		for (let i = 0; i < 20; i++) {
			good!.send(Buffer.from([i]));
			expect(await nextMessage(good!)).toEqual(Buffer.from([i]));
		}
		good!.terminate();
		greedy!.terminate();
	});

	it("the gateway's admin address shows links and limits; the public one does not", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		worker.send("x");
		await nextMessage(worker);
		const admin = `http://127.0.0.1:${swarm.gateway.admin.port}`;
		expect(await (await fetch(`${admin}/status`)).json()).toMatchObject({
			linkCount: 1,
			links: [
				{
					key: addressOf(testKey(1).publicKey),
					peer: "127.0.0.1",
					model: "tiny",
					bytes: { fromWorker: 7, toWorker: 3 },
				},
			],
		});
		const metrics = await (await fetch(`${admin}/metrics`)).text();
		expect(metrics).toContain('kvasir_gateway_requests_total{outcome="spliced"} 1');
		expect(metrics).toContain('kvasir_gateway_limit{limit="admitRatePerSecond"} 20');
		for (const path of ["/metrics", "/status", "/health"]) {
			expect((await fetch(`http://${swarm.host}${path}`)).status).toBe(404);
		}
		worker.terminate();
	});

	it("tell a key that signs what they see of its own links, and nobody of others'", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		const ask = async (identity: KeyPair) => {
			const authorization = signRequest({ method: "GET", path: "/v1/links" }, { identity }, realParts);
			const answer = await fetch(`http://${swarm.host}/v1/links`, { headers: { authorization } });
			return (await answer.json()) as { links: unknown[] };
		};
		expect(await ask(testKey(1))).toMatchObject({ links: [{ model: "tiny" }] });
		expect(await ask(testKey(2))).toEqual({ links: [] });
		expect((await fetch(`http://${swarm.host}/v1/links`)).status).toBe(401);
		worker.terminate();
	});

	it("survive what should never happen: a store that throws refuses one request alone", async () => {
		const admission: Admission = {
			mode: "open",
			check: async () => {
				throw new Error("a bug");
			},
			bannedOf: async () => [],
		};
		await using swarm = await startSpliceSwarm({ gateway: { admission } });
		await expect(dialWorker(swarm.host)).rejects.toMatchObject({ status: 503 });
		await expect(dialWorker(swarm.host)).rejects.toMatchObject({ status: 503 });
	});
});
