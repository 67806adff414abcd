import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { dialRelay } from "../../test/support/dial-relay.ts";
import { scriptedIdentity } from "../../test/support/scripted-worker.ts";
import { type ServingWorker, startServingWorker } from "../../test/support/serving-worker.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { type Backbone, startBackbone } from "../backbone/backbone.ts";
import type { RemoteSettings } from "../backbone/decode/decode-messages.ts";
import { openDecodeRoom } from "../backbone/decode/decode-room.ts";
import { systemClock } from "../io/clock.ts";
import { silentLog } from "../io/log.ts";
import { systemRandom } from "../io/random.ts";
import type { Model } from "../model/model.ts";
import { openNamedModel } from "../model/resolve-model.ts";
import { tokenizerOf } from "../model/tokenizer.ts";
import { junitXml } from "./junit.ts";
import { stepSummary } from "./step-summary.ts";
import { type SwarmVerifyOptions, type VerifiedDecoder, verifySwarm } from "./swarm-verify.ts";

let model: Model;
let home: string;
let backbone: Backbone;
const workers: ServingWorker[] = [];

beforeEach(async () => {
	home = await temporaryHome();
	model = await openNamedModel(home, "tiny");
	const { name, modelId, shape } = model;
	backbone = await startBackbone({
		identity: scriptedIdentity(200),
		model: { name, modelId, ...shape },
		listen: { host: "127.0.0.1", port: 0 },
		wholeRows: false,
		deadlineMs: 20_000,
		clock: systemClock,
		random: systemRandom,
		log: silentLog,
	});
});
afterEach(async () => {
	for (const worker of workers.splice(0)) await worker.kill();
	await backbone.close();
	await model.weights.close();
});

async function join(seed: number, hold: string, corrupt?: { layer: number; expert: number }): Promise<ServingWorker> {
	const worker = await startServingWorker(await dialRelay(backbone.address!.port), { model, seed, hold, corrupt });
	workers.push(worker);
	return worker;
}

async function open(remote?: RemoteSettings): Promise<VerifiedDecoder> {
	const settings = { home, model: "tiny", engine: "f32" as const, ...(remote === undefined ? {} : { remote }) };
	const room = await openDecodeRoom(settings, backbone.remote);
	return {
		facts: room.facts,
		generate: (request, hooks) => room.scheduler.generate(request, hooks),
		report: async () => room.report(),
		close: () => room.close(),
	};
}

function verify(options: Partial<SwarmVerifyOptions> = {}, layers: RemoteSettings["layers"] = "all") {
	const tokenizer = tokenizerOf(model.metadata);
	const prompt = "The capital of France is";
	return verifySwarm({
		openLocal: () => open(),
		openRemote: () => open({ layers, checkPartials: true }),
		backbone,
		prompts: [{ text: prompt, tokens: tokenizer.encode(prompt) }],
		tokens: 8,
		stopTokens: [...tokenizer.endOfGeneration],
		textOf: (tokens) => tokenizer.decode(tokens),
		clock: systemClock,
		...options,
	});
}

const covered = (layers: number[]) => backbone.waitForCoverage(layers, { timeoutMs: 10_000 });
const allLayers = () => Array.from({ length: model.shape.layers }, (_, layer) => layer);

describe("verifySwarm()", () => {
	test("two workers that hold half of the experts each: identical, every pair answered remotely", async () => {
		const { layers, experts, topK, hidden } = model.shape;
		await join(1, `all:0-${experts / 2 - 1}`);
		await join(2, `all:${experts / 2}-${experts - 1}`);
		await covered(allLayers());
		const report = await verify();
		const positions = report.argmax.total;
		const pairs = positions * layers * topK;
		expect(report).toMatchObject({
			verdict: "identical",
			remote: { layers: allLayers(), asked: pairs, answered: pairs, fallback: 0, retried: 0 },
			argmax: { same: positions },
			logits: { identical: true, cosineMin: 1, maxAbs: 0 },
			partials: { pairs, identical: pairs, worst: 0 },
			firstDivergence: null,
			served: { pairs, bytes: pairs * hidden * 4, nano: String(pairs * hidden * 4 * 7) },
		});
		expect(report.tokens.text).toMatch(/^ Paris\./);
		expect(report.tokens.same).toBe(report.tokens.total);
		expect(report.remote.workers.map(({ class: name }) => name)).toEqual(["f32", "f32"]);
		expect(report.remote.workers.reduce((sum, { pairs: served }) => sum + served, 0)).toBe(pairs);
		// One for the prompt, seven for the generated tokens that are fed.
		expect(report.timing.roundTrips).toBe(8 * layers);
		expect(junitXml(report)).toContain('failures="0"');
		expect(stepSummary(report)).toContain("### kvasir verify: identical");
	});

	test("a worker with one wrong value: different, and the report names prompt, position, layer, expert and worker", async () => {
		await join(1, "all:all", { layer: 1, expert: 3 });
		await covered(allLayers());
		const report = await verify();
		expect(report.verdict).toBe("different");
		expect(report.firstDivergence).toMatchObject({
			prompt: "The capital of France is",
			layer: 1,
			expert: 3,
			worker: backbone.workers[0]!.address,
		});
		expect(report.firstDivergence!.remote).toBe(-report.firstDivergence!.local);
		expect(report.partials.identical).toBeLessThan(report.partials.pairs);
		expect(report.remote.answered).toBe(report.remote.asked);
		expect(junitXml(report)).toMatch(/<failure message="different, first at prompt &quot;The capital/);
		expect(stepSummary(report)).toContain("**fail**");
	});

	test("only some layers, and experts that nobody holds: incomplete, unless falling back is allowed", async () => {
		const { experts, topK } = model.shape;
		await join(1, `2:0-${experts - 2}`);
		await expect.poll(() => backbone.gaps([2]).count).toBe(1);
		const report = await verify({ tokens: 12 }, [2]);
		expect(report.remote.asked).toBe(report.argmax.total * topK);
		expect(report.remote.fallback).toBeGreaterThan(0);
		expect(report.remote.answered + report.remote.fallback).toBe(report.remote.asked);
		expect(report.verdict).toBe("incomplete");
		expect((await verify({ tokens: 12, allowFallback: true }, [2])).verdict).toBe("identical");
	});

	test("a worker killed in the middle: another holder answers, and the tokens stay the same", async () => {
		const first = await join(1, "all:all");
		await join(2, "all:all");
		await covered(allLayers());
		let killed: Promise<void> | null = null;
		const remote = backbone.remote;
		let requests = 0;
		const openRemote = async () => {
			const room = await openDecodeRoom(
				{ home, model: "tiny", engine: "f32", remote: { layers: "all", checkPartials: true } },
				{
					request(request) {
						if (++requests === 10) killed = first.kill();
						return remote.request(request);
					},
				},
			);
			return {
				facts: room.facts,
				generate: room.scheduler.generate.bind(room.scheduler),
				report: async () => room.report(),
				close: () => room.close(),
			};
		};
		const report = await verify({ openRemote });
		await killed;
		workers.splice(0, 1);
		expect(report).toMatchObject({ verdict: "identical", remote: { fallback: 0 } });
		expect(report.remote.workers.length).toBe(2);
	});
});
