import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { dialRelay } from "../../test/support/dial-relay.ts";
import { scriptedIdentity } from "../../test/support/scripted-worker.ts";
import { startServingWorker } from "../../test/support/serving-worker.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { type Backbone, type BackboneEvent, startBackbone } from "../backbone/backbone.ts";
import { type DecodeRoom, openDecodeRoom } from "../backbone/decode/decode-room.ts";
import { greedy } from "../backbone/decode/sampler.ts";
import { evidenceText } from "../backbone/pay/evidence.ts";
import { systemClock } from "../io/clock.ts";
import { silentLog } from "../io/log.ts";
import { systemRandom } from "../io/random.ts";
import { openNamedModel } from "../model/resolve-model.ts";
import { readEvidence, replayEvidence } from "./evidence.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
	for (const close of closers.splice(0).reverse()) await close();
});

test("a wrong worker is caught by an audit, quarantined, and its evidence convicts it anywhere", async () => {
	const home = await temporaryHome();
	const model = await openNamedModel(home, "tiny");
	closers.push(() => model.weights.close());
	const { name, modelId, shape } = model;
	let backbone: Backbone | null = null;
	const room: DecodeRoom = await openDecodeRoom(
		{ home, model: "tiny", engine: "f32", remote: { layers: "all" } },
		{ request: (request) => backbone!.remote.request(request) },
	);
	closers.push(() => room.close());
	const path = join(home, "evidence.json");
	backbone = await startBackbone({
		identity: scriptedIdentity(200),
		model: { name, modelId, ...shape },
		listen: { host: "127.0.0.1", port: 0 },
		wholeRows: false,
		deadlineMs: 20_000,
		audits: {
			engineClass: room.facts.engineClass,
			recompute: (batch) => room.decoder.local.compute(batch),
			keep: (evidence) => writeFile(path, evidenceText(evidence)),
		},
		clock: systemClock,
		random: systemRandom,
		log: silentLog,
	});
	closers.push(() => backbone.close());
	const failed = new Promise<Extract<BackboneEvent, { event: "audit_failed" }>>((resolve) => {
		backbone.subscribe((event) => event.event === "audit_failed" && resolve(event));
	});
	const worker = await startServingWorker(await dialRelay(backbone.address!.port), {
		model,
		seed: 1,
		hold: "all:all",
		corrupt: { layer: 2, expert: 5 },
	});
	closers.push(() => worker.kill());
	await backbone.waitForCoverage([0, 1, 2], { timeoutMs: 10_000 });
	const decoded = room.scheduler.generate({ prompt: [1, 2, 3, 4, 5, 6, 7, 8], maxTokens: 8, sampling: greedy });
	const { worker: caught, layer, expert, tainted } = await failed;
	await decoded;
	expect({ layer, expert, tainted }).toEqual({ layer: 2, expert: 5, tainted: [1] });
	expect(caught.usable).toBe(false);
	expect([backbone.isTainted(1), backbone.isTainted(2)]).toEqual([true, false]);
	expect(backbone.snapshot().unanswered.not_holding).toBeGreaterThan(0);

	await expect.poll(() => readEvidence(path).catch(() => null)).not.toBeNull();
	const evidence = await readEvidence(path);
	const own = { modelId, engineClass: "f32", compute: room.decoder.local.compute.bind(room.decoder.local) };
	expect(await replayEvidence(evidence, own)).toEqual({
		worker: caught.address,
		engineClass: "f32",
		layer: 2,
		expert: 5,
		reproduced: true,
		verdict: "wrong",
	});
	const honest = { ...evidence, answer: evidence.expected };
	expect(await replayEvidence(honest, own)).toMatchObject({ verdict: "right", expert: null });
	await expect(replayEvidence(evidence, { ...own, modelId: new Uint8Array(32) })).rejects.toMatchObject({
		code: "model_mismatch",
	});
	await writeFile(path, "{}");
	await expect(readEvidence(path)).rejects.toMatchObject({ code: "bad_file" });
});
