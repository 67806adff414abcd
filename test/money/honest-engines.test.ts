import { afterAll, expect, test } from "vitest";
import { openDecodeRoom } from "../../src/backbone/decode/decode-room.ts";
import { LocalExperts } from "../../src/backbone/decode/local-experts.ts";
import { greedy } from "../../src/backbone/decode/sampler.ts";
import { dispatchMessage } from "../../src/backbone/dispatch/dispatch-rows.ts";
import type { WorkerLink } from "../../src/backbone/links/worker-link.ts";
import { Audits } from "../../src/backbone/pay/audits.ts";
import { batchOf, expectedAnswer } from "../../src/backbone/pay/compare-answer.ts";
import type { RemoteRequest } from "../../src/backbone/remote.ts";
import { modelFactsOf } from "../../src/commands/model/model-facts.ts";
import { type EngineName, openEngine } from "../../src/experts/open-engine.ts";
import { quantiseRows } from "../../src/experts/quantise-rows.ts";
import { packagePath } from "../../src/io/built.ts";
import { silentLog } from "../../src/io/log.ts";
import { openModel } from "../../src/model/open-model.ts";
import { EngineRemote } from "../support/engine-remote.ts";
import { fakeClock } from "../support/fake-clock.ts";
import { runs } from "../support/long.ts";
import { seededRandom } from "../support/seeded-random.ts";

// Real engines, on rows that decoding real text makes: the rounding of each class is its own, not a model of it.

const path = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const dispatches = runs(1_000, 100_000);
const model = await openModel(path);
afterAll(() => model.weights.close());
const { hidden } = model.shape;
const requests = await decodedRequests();

/** What a decode of some tokens asks for, layer by layer. */
async function decodedRequests(): Promise<readonly RemoteRequest[]> {
	const swarm = await EngineRemote.open(path);
	const remote = { layers: "all", prefill: true } as const;
	const room = await openDecodeRoom({ home: "", model: path, engine: "canonical", remote }, swarm);
	for (const prompt of [[267, 270, 262, 374, 394, 371, 257], [300], [5, 9, 17, 33]]) {
		await room.scheduler.generate({ prompt, maxTokens: 60, sampling: greedy });
	}
	await room.close();
	await swarm.close();
	return swarm.requests;
}

async function openExperts(engine: EngineName) {
	const opened = await openEngine({ engine, hidden, threads: 1, memoryBytes: 64 * 1024 ** 2 });
	return { class: opened.engineClass, experts: new LocalExperts(model, opened), close: () => opened.close() };
}

test.each<EngineName>(["canonical", "f32", "onnx"])(
	`a backbone of class canonical-1 flags no answer of a %s worker in ${dispatches} dispatches`,
	async (engine) => {
		const here = await openExperts("canonical");
		const worker = await openExperts(engine);
		const failures: unknown[] = [];
		const audits = new Audits({
			...{ model: modelFactsOf(model), clock: fakeClock(), random: seededRandom(7), log: silentLog, share: 1 },
			engineClass: here.class,
			recompute: (batch) => here.experts.compute(batch),
			hold() {},
			release() {},
			condemn: () => failures.push("condemned"),
			emit: ({ id, layer, expert }) => failures.push({ id, layer, expert }),
		});
		const link = { address: "worker", session: "", hello: { engine: { class: worker.class } } } as WorkerLink;
		const { uniform } = seededRandom(11);
		for (let id = 1; id <= dispatches; id++) {
			const request = scaled(requests[id % requests.length]!, id <= requests.length ? 1 : 4 ** (2 * uniform() - 1));
			const pairs = [...request.expert.keys()];
			const rows = [...Array(request.rowCount).keys()];
			const planned = { mode: (id % 2) as 0 | 1, pairs, rows };
			const asked = dispatchMessage(request, planned, { hidden, q14: worker.class === "canonical-1" && id % 3 > 0 });
			const vectors = expectedAnswer(asked, await worker.experts.compute(batchOf(asked, hidden)), hidden);
			audits.accepted({ worker: link, id, asked, vectors: new Uint8Array(vectors.slice().buffer), sequence: [id] });
			if (id % 64 === 0) await audits.finish(link); // as many may wait: none is skipped
		}
		await audits.finish(link);
		await Promise.all([here.close(), worker.close()]);
		expect(failures).toEqual([]);
		expect(audits.counts).toEqual({ passed: dispatches, failed: 0, skipped: 0 });
	},
);

/** The request, were its rows `by` times as large. */
function scaled(request: RemoteRequest, by: number): RemoteRequest {
	const rows = request.rows.map((value) => value * by);
	return { ...request, rows, quantised: quantiseRows(rows, request.rowCount, hidden) };
}
