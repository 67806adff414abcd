import { describe, expect, it, onTestFinished } from "vitest";
import { startBackbone } from "../../src/backbone/backbone.ts";
import { keyPairFromSeed } from "../../src/io/crypto.ts";
import { webSocketDialer } from "../../src/worker/dialer.ts";
import { openWorkerHome } from "../../src/worker/home.ts";
import { startWorker } from "../../src/worker/worker.ts";
import type { WorkerEvent } from "../../src/worker/worker-event.ts";
import { type Direction, startImpairingRelay } from "../support/impairing-relay.ts";
import { plainEngine, plainModel } from "../support/plain-engine.ts";
import { bytes, sampleWelcomeBody } from "../support/sample-messages.ts";
import { realParts, startSpliceSwarm, testKey } from "../support/splice-swarm.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { until } from "../support/until.ts";

const dims = { layers: 2, experts: 4, hidden: 16, width: 4 };
const heartbeatMs = 100;
const deadMs = 500;
/** Redials come at once, so that the test measures how soon a dead link is noticed. */
const parts = { ...realParts, random: { ...realParts.random, uniform: () => 0.01 } };

/** Worker, relay, gateway, hub and backbone, with heartbeats of a tenth of a second. */
async function startScene() {
	const relay = await startImpairingRelay({ host: "127.0.0.1", port: 1 }, { delayMs: 5 });
	const publicHost = `127.0.0.1:${relay.port}`;
	const swarm = await startSpliceSwarm({
		gateway: { publicHosts: [publicHost] },
		hub: { ledgerId: "ab".repeat(16) },
		backbone: { park: 1 },
	});
	// The echoing backbone of the splice tests makes room for a real one under its key.
	await swarm.backbone.close();
	relay.target = swarm.gateway.address;
	const backbone = await startBackbone({
		...parts,
		identity: testKey(200),
		model: { ...sampleWelcomeBody.model, ...dims, modelId: bytes(32, 2), expertWidth: dims.width, name: "tiny" },
		hub: swarm.hub.relay,
		heartbeatMs,
		deadMs,
	});
	const stop = new AbortController();
	const events: WorkerEvent[] = [];
	const identity = keyPairFromSeed(bytes(32, 7));
	await until(() => backbone.snapshot().parked > 0, "a parked connection");
	const worker = await startWorker({
		...parts,
		dial: webSocketDialer({ ...parts, url: `ws://${publicHost}`, identity }),
		gateway: publicHost,
		backbone: null,
		identity,
		payout: identity.publicKey,
		model: plainModel(dims, bytes(32, 2)),
		hold: () => [{ layer: 0, first: 0, count: 4 }],
		engine: plainEngine(),
		engineFacts: { device: "cpu", memoryBytes: 2 ** 30, threads: 1, selfCheck: new Uint8Array(0) },
		memoryBytes: 2 ** 20,
		build: "test",
		home: await openWorkerHome(await temporaryHome(), parts.random),
		keepReceipt: async () => {},
		signal: stop.signal,
		onEvent: (event) => events.push(event),
	});
	onTestFinished(async () => {
		stop.abort(new Error("the test is over"));
		await worker.closed.catch(() => {});
		await backbone.close();
		await swarm[Symbol.asyncDispose]();
		await relay[Symbol.asyncDispose]();
	});
	const joins: string[] = [];
	const lefts: number[] = [];
	backbone.subscribe((event) => {
		if (event.event === "joined") joins.push(event.worker.session);
		if (event.event === "left") lefts.push(event.code);
	});
	const connected = () => events.some(({ event }) => event === "connected");
	await until(() => backbone.workers.length === 1 && connected(), "the worker");
	return { relay, backbone, events, joins, lefts };
}

describe("a link on which bytes vanish", () => {
	it.each([
		["both ways", ["up", "down"]],
		["towards the worker", ["down"]],
		["towards the backbone", ["up"]],
	] as [string, Direction[]][])(
		"%s is noticed by its silence and replaced, and the new one serves",
		async (_, directions) => {
			const { relay, backbone, lefts, events } = await startScene();
			const [old] = backbone.workers;
			relay.drop(...directions);
			const startMs = performance.now();
			await until(() => backbone.workers.length === 1 && backbone.workers[0] !== old, "the new link", 15_000);
			expect(performance.now() - startMs).toBeGreaterThanOrEqual(deadMs / 2);
			expect(lefts.length).toBeLessThanOrEqual(1);
			await until(() => backbone.workers[0]!.holdings.count === 4, "what it holds");
			await until(() => events.filter(({ event }) => event === "connected").length >= 2, "the worker to serve again");
			const rows = new Float32Array(dims.hidden).fill(0.5);
			const answer = await backbone.remote.request({
				layer: 0,
				rowCount: 1,
				rows,
				rowIndex: Uint16Array.of(0, 0),
				expert: Uint16Array.of(1, 3),
				weight: Float32Array.of(0.5, 0.5),
				phase: "decode",
				sequence: [1],
			});
			expect(answer.failures).toEqual([]);
		},
	);
});
