import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { dialRelay } from "../../test/support/dial-relay.ts";
import { everything, expectedVectors, requestOf, testModel } from "../../test/support/memory-backbone.ts";
import { type RawHub, startRawHub } from "../../test/support/raw-hub.ts";
import { type ReceiptApi, startReceiptApi } from "../../test/support/receipt-api.ts";
import {
	countersignAll,
	type Script,
	type ScriptedWorker,
	scriptedIdentity,
	startScriptedWorker,
} from "../../test/support/scripted-worker.ts";
import { systemClock } from "../io/clock.ts";
import { silentLog } from "../io/log.ts";
import { systemRandom } from "../io/random.ts";
import { type Backbone, type BackboneOptions, startBackbone } from "./backbone.ts";

let home: string;
let api: ReceiptApi;
let hub: RawHub;
let backbone: Backbone;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), "kvasir-test-"));
	api = await startReceiptApi(join(home, "hub.db"));
	hub = await startRawHub({ apiPort: api.port, ledgerId: api.ledgerId });
});
afterEach(async () => {
	await backbone.close();
	await hub.close();
	await api.close();
	await rm(home, { recursive: true });
});

async function start(options: Partial<BackboneOptions> = {}): Promise<void> {
	backbone = await startBackbone({
		identity: scriptedIdentity(200),
		model: testModel,
		hub: { host: "127.0.0.1", port: hub.port },
		clock: systemClock,
		random: systemRandom,
		log: silentLog,
		...options,
	});
}

async function joinWorker(script: Script = {}, port = hub.port) {
	if (port === hub.port) await hub.untilParked(1);
	return startScriptedWorker(await dialRelay(port), { holds: everything, ...script });
}

const covered = { timeoutMs: 5000 };

describe("startBackbone()", () => {
	test("serves workers that come through the hub, and has their work paid, countersigned, by relay id", async () => {
		await start();
		await joinWorker({ onOther: countersignAll });
		await backbone.waitForCoverage([0, 1, 2], covered);
		const request = requestOf([
			[3, 1],
			[7, 0],
		]);
		const answer = await backbone.remote.request(request);
		expect([...answer.worker]).toEqual([0, 0, 0, 0]);
		await backbone.remote.request(request);
		expect(await backbone.flushReceipts()).toBe(true);
		expect(api.refusals).toEqual([]);
		expect(api.accepted.map(({ status, receipt }) => [status, receipt.number, receipt.pairs, receipt.relay])).toEqual([
			["confirmed", 1, 8n, "cd".repeat(16)],
		]);
		expect(api.accepted[0]!.receipt).toMatchObject({ from: 0, to: 2, servedBytes: 8n * 32n, unpaid: [] });
		expect(backbone.snapshot()).toMatchObject({
			asked: 8,
			answered: 8,
			paidPairs: 8,
			receipts: { issued: 1, pending: 0 },
			covered: { experts: 24, of: 24 },
		});
		expect(backbone.snapshot().workers[0]!.rttMsP50).toBeGreaterThan(0);
	});

	test("receipts of a worker that left go out unconfirmed; numbers and hashes chain", async () => {
		await start();
		const worker = await joinWorker({ onOther: countersignAll });
		await backbone.waitForCoverage([1], covered);
		await backbone.remote.request(requestOf([[0, 1]]));
		await backbone.flushReceipts();
		await backbone.remote.request(requestOf([[2, 3]]));
		worker.link.close(1001, "gone");
		await expect.poll(() => api.accepted.length, { timeout: 5000 }).toBe(2);
		const [first, second] = api.accepted;
		expect(second!.status).toBe("unconfirmed");
		expect(Buffer.from(second!.receipt.previous).toString("hex")).toBe(first!.hash);
		expect(second!.receipt).toMatchObject({ number: 2, from: 1, to: 2, pairs: 2n });
	});

	test("keeps receipts while the hub is away", async () => {
		await start();
		await joinWorker({ onOther: countersignAll });
		await backbone.waitForCoverage([1], covered);
		await backbone.remote.request(requestOf([[0, 1]]));
		api.away = true;
		expect(await backbone.flushReceipts()).toBe(false);
		expect(backbone.snapshot().receipts).toEqual({ issued: 1, pending: 1 });
		api.away = false;
		await expect.poll(() => api.accepted.length, { timeout: 5000 }).toBe(1);
		await expect.poll(() => backbone.snapshot().receipts.pending).toBe(0);
	});

	test("what a killed backbone accepted or receipted is paid after the next start, once", async () => {
		const journals = join(home, "journals");
		await start({ journals });
		await joinWorker({ onOther: countersignAll });
		await backbone.waitForCoverage([1], covered);
		await backbone.remote.request(requestOf([[0, 1]]));
		api.away = true;
		await backbone.flushReceipts();
		await backbone.remote.request(requestOf([[2, 3]]));
		await cp(journals, join(home, "as-killed"), { recursive: true });
		await backbone.close();
		api.away = false;
		await start({ journals: join(home, "as-killed") });
		await expect.poll(() => api.accepted.length, { timeout: 5000 }).toBe(2);
		const taken = api.accepted.map(({ status, receipt }) => [receipt.number, status, receipt.pairs]);
		expect(taken.sort()).toEqual([
			[1, "confirmed", 2n],
			[2, "unconfirmed", 2n],
		]);
		await expect.poll(() => readdir(join(home, "as-killed"))).toEqual([]);
		await backbone.close();
		await start({ journals });
		await backbone.flushReceipts();
		await hub.untilParked(1);
		expect(await api.credited()).toBe(4n * 32n);
	});

	test("a disputed receipt is posted with the worker's figures, and the session ends so that a new one can start", async () => {
		await start();
		const worker = await joinWorker({
			onOther(message, self) {
				if (message.kind !== "receipt") return;
				self.link.send({ kind: "countersign", number: 1, answer: { pairs: 1, digest: new Uint8Array(32) } });
			},
		});
		await backbone.waitForCoverage([1], covered);
		await backbone.remote.request(requestOf([[0, 1]]));
		await backbone.flushReceipts();
		expect(api.accepted[0]).toMatchObject({ status: "disputed" });
		expect(await api.credited()).toBe(32n);
		await worker.ended;
		expect(worker.others.map(({ kind }) => kind)).toEqual(["receipt", "drain", "bye"]);
	});

	test("listens for workers that dial directly, or that the hub dials for", async () => {
		await start({ listen: { host: "127.0.0.1", port: 0 } });
		const worker = await joinWorker({ seed: 2 }, backbone.address!.port);
		await backbone.waitForCoverage([1], covered);
		const request = requestOf([[5, 4]]);
		const answer = await backbone.remote.request({ ...request, layer: 2 });
		expect(answer.summed[0]).toBe(1);
		expect(worker.welcome.model.name).toBe("test");
		expect(expectedVectors(request).length).toBe(2);
	});

	test("drain: no new work, receipts exchanged, goodbye, and workers may come back", async () => {
		await start();
		const worker = await joinWorker({ onOther: countersignAll });
		await backbone.waitForCoverage([1], covered);
		await backbone.remote.request(requestOf([[0, 1]]));
		await backbone.drain("restarting", 1000);
		expect((await worker.ended).code).toBe(1000);
		expect(worker.others.map(({ kind }) => kind)).toEqual(["drain", "receipt", "bye"]);
		expect(worker.others.at(-1)).toMatchObject({ retryAfterMs: 1000 });
		expect(api.accepted.map(({ status }) => status)).toEqual(["confirmed"]);
		expect(hub.parked.length).toBe(0);
	});

	test("drain waits for a hedge's loser, so that both receipts are countersigned and paid", async () => {
		await start();
		let slow: ScriptedWorker | null = null;
		for (const seed of [1, 2]) {
			await joinWorker({
				seed,
				onDispatch(dispatch, worker) {
					if (slow === null) slow = worker;
					else worker.answer(dispatch);
				},
				onOther(message, worker) {
					countersignAll(message, worker);
					if (message.kind === "drain" && worker === slow) worker.answer(worker.dispatches[0]!);
				},
			});
			await expect.poll(() => backbone.workers.length, { timeout: 5000 }).toBe(seed);
		}
		await backbone.remote.request(requestOf([[0, 1]]));
		expect(backbone.snapshot()).toMatchObject({ hedged: 2, paidPairs: 2 });
		await backbone.drain("restarting", 5000);
		expect(api.accepted.map(({ status, receipt }) => [status, receipt.pairs, receipt.unpaid])).toEqual([
			["confirmed", 2n, []],
			["confirmed", 2n, []],
		]);
	});

	test("says which experts are missing when they do not come in time", async () => {
		await start();
		await joinWorker({ holds: [{ layer: 1, first: 0, count: 6 }] });
		await expect(backbone.waitForCoverage([1], { timeoutMs: 300 })).rejects.toMatchObject({
			code: "timeout",
			facts: { missing: 2, first: ["1:6", "1:7"] },
		});
	});

	test("closing ends requests, links and sockets", async () => {
		await start();
		const worker = await joinWorker({ onDispatch() {} });
		await backbone.waitForCoverage([1], covered);
		const asked = backbone.remote.request(requestOf([[0, 1]]));
		const rejected = expect(asked).rejects.toMatchObject({ code: "closed" });
		await backbone.close();
		await rejected;
		expect((await worker.ended).code).toBe(1001);
		expect(hub.parked.length).toBe(0);
	});
});
