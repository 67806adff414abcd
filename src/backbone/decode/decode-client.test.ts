import { expect, onTestFinished, test } from "vitest";
import { EngineRemote } from "../../../test/support/engine-remote.ts";
import { packagePath } from "../../io/built.ts";
import { type DecodeClient, openDecodeThread } from "./decode-client.ts";
import type { DecodeSettings } from "./decode-messages.ts";
import { greedy } from "./sampler.ts";

// The thread runs from dist: npm run build comes first.

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const prompt = [267, 270, 262, 374, 394, 371, 257]; // "The capital of France is"
const answer = [337, 317, 256, 13]; // " Paris."

async function open(more: Partial<DecodeSettings> = {}, remote?: EngineRemote): Promise<DecodeClient> {
	const client = await openDecodeThread({ home: "none", model: tiny, engine: "f32", ...more }, remote);
	onTestFinished(() => client.close());
	return client;
}

async function swarm(): Promise<EngineRemote> {
	const remote = await EngineRemote.open(tiny);
	onTestFinished(() => remote.close());
	return remote;
}

test("generates in the thread, token by token, with experts asked of this one: the bytes of a local run", async () => {
	const local = await open();
	expect(local.facts).toMatchObject({ engineClass: "f32", weightsKind: "file", remoteLayers: [] });
	const request = { prompt, maxTokens: 4, sampling: greedy, logits: "digest" } as const;
	const expected = await local.generate(request);
	const remote = await swarm();
	const client = await open({ remote: { layers: "all", checkPartials: true } }, remote);
	const streamed: number[] = [];
	const result = await client.generate(request, { onToken: (token) => streamed.push(token) });
	expect(streamed).toEqual(answer);
	expect(result).toEqual(expected);
	const report = await client.report();
	expect(report.remote).toMatchObject({ asked: 160, answered: 160, fallback: 0, roundTrips: 16 });
	expect(report.partials).toMatchObject({ pairs: 160, identical: 160 });
	expect(report.times.expertsMs).toBeGreaterThan(0);
});

test("computes pairs with the local experts, as an audit asks", async () => {
	const client = await open();
	const remote = await swarm();
	const rows = new Float32Array(256).fill(0.1);
	const pair = { layer: 2, rowCount: 1, rowIndex: Uint16Array.of(0), expert: Uint16Array.of(7) };
	const vectors = await client.compute({ ...pair, rows: { dtype: "f32", values: rows } });
	const request = { ...pair, rows, weight: Float32Array.of(1), phase: "decode", sequence: [1] } as const;
	expect(vectors).toEqual((await remote.request(request)).vectors);
});

test("an abort reaches the thread", async () => {
	const client = await open();
	const abort = new AbortController();
	const onToken = () => abort.abort();
	const result = await client.generate(
		{ prompt, maxTokens: 1000, sampling: greedy },
		{ signal: abort.signal, onToken },
	);
	expect(result.finish).toBe("aborted");
	expect(result.tokens.length).toBeLessThan(1000);
	const before = { signal: AbortSignal.abort() };
	expect((await client.generate({ prompt, maxTokens: 1000, sampling: greedy }, before)).finish).toBe("aborted");
});

test("errors keep their code", async () => {
	const opening = openDecodeThread({ home: "none", model: "nowhere.gguf", engine: "f32" });
	await expect(opening).rejects.toMatchObject({ code: "file_missing" });
	const client = await open();
	const generating = client.generate({ prompt: [], maxTokens: 1, sampling: greedy });
	await expect(generating).rejects.toMatchObject({ code: "usage" });
});

test("what the swarm throws ends the text with that code", async () => {
	const remote = await swarm();
	remote.spoil = (answer) => answer.worker.fill(-1);
	const client = await open({ remote: { layers: [0], require: true } }, remote);
	const generating = client.generate({ prompt, maxTokens: 1, sampling: greedy });
	await expect(generating).rejects.toMatchObject({ code: "remote_required" });
});

test("after closing, running texts have ended and new ones are refused", async () => {
	const client = await open();
	const running = client.generate({ prompt, maxTokens: 1000, sampling: greedy });
	await client.close();
	expect((await running).finish).toBe("aborted");
	await expect(client.report()).rejects.toMatchObject({ code: "engine_failed" });
});
