import { expect, onTestFinished, test } from "vitest";
import { EngineRemote } from "../../../test/support/engine-remote.ts";
import { packagePath } from "../../io/built.ts";
import type { RemoteSettings } from "./decode-messages.ts";
import { type DecodeRoom, openDecodeRoom } from "./decode-room.ts";
import { greedy } from "./sampler.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const prompt = [267, 270, 262, 374, 394, 371, 257]; // "The capital of France is"
const maxTokens = 6;
const positions = prompt.length + maxTokens - 1;
const topK = 4;

async function open(remote?: RemoteSettings): Promise<{ room: DecodeRoom; swarm: EngineRemote }> {
	const swarm = await EngineRemote.open(tiny);
	onTestFinished(() => swarm.close());
	const room = await openDecodeRoom({ home: "", model: tiny, engine: "f32", ...(remote && { remote }) }, swarm);
	onTestFinished(() => room.close());
	return { room, swarm };
}

const run = (room: DecodeRoom) => room.scheduler.generate({ prompt, maxTokens, sampling: greedy, logits: "keep" });

test("all layers remote: the logits of a local run, byte for byte, and every pair accounted for", async () => {
	const local = await run((await open()).room);
	const { room, swarm } = await open({ layers: "all", checkPartials: true });
	const remote = await run(room);
	expect(remote.tokens).toEqual(local.tokens);
	expect(Buffer.from(remote.logitsSha256!)).toEqual(Buffer.from(local.logitsSha256!));
	const pairs = positions * 4 * topK;
	expect(room.report().remote).toEqual({
		asked: pairs,
		answered: pairs,
		fallback: 0,
		retried: 0,
		roundTrips: 4 * maxTokens,
		failures: {},
	});
	expect(room.report().partials).toMatchObject({ pairs, identical: pairs, tolerable: pairs, worst: 0, first: null });
	expect(swarm.requests.length).toBe(4 * maxTokens); // one request per layer and step
	expect(new Set(swarm.requests.map(({ phase }) => phase))).toEqual(new Set(["prefill", "decode"]));
});

test("rows summed by a worker give the same logits, byte for byte", async () => {
	const local = await run((await open()).room);
	const { room, swarm } = await open({ layers: [1, 3], checkPartials: true });
	swarm.wholeRows = true;
	const remote = await run(room);
	expect(Buffer.from(remote.logitsSha256!)).toEqual(Buffer.from(local.logitsSha256!));
	const pairs = positions * 2 * topK;
	expect(room.report().partials).toMatchObject({ pairs, identical: pairs });
});

test("pairs nobody answered, and vectors that are not finite, are computed here", async () => {
	const local = await run((await open()).room);
	const { room, swarm } = await open({ layers: "all" });
	let spoiled = 0;
	swarm.spoil = (answer, { layer }) => {
		if (layer === 1) {
			answer.worker[2] = -1;
			answer.vectors.fill(7, 2 * 256, 3 * 256);
			answer.failures = [{ reason: "deadline", pairs: 1 }];
		}
		if (layer === 2) answer.vectors[0] = Number.NaN;
		if (layer === 1 || layer === 2) spoiled += 1;
	};
	const remote = await run(room);
	expect(Buffer.from(remote.logitsSha256!)).toEqual(Buffer.from(local.logitsSha256!));
	const { asked, answered, fallback, failures } = room.report().remote!;
	expect(fallback).toBe(spoiled);
	expect(asked).toBe(answered + fallback);
	expect(failures).toEqual({ deadline: maxTokens, non_finite_result: maxTokens });
});

test("a spoiled sum costs the whole row", async () => {
	const local = await run((await open()).room);
	const { room, swarm } = await open({ layers: [0] });
	swarm.wholeRows = true;
	swarm.spoil = (answer) => {
		answer.vectors[1] = Number.POSITIVE_INFINITY;
	};
	const remote = await run(room);
	expect(Buffer.from(remote.logitsSha256!)).toEqual(Buffer.from(local.logitsSha256!));
	expect(room.report().remote!.fallback).toBe(maxTokens * topK);
});

test("a wrong partial is used as it came, and the check names it", async () => {
	const local = await run((await open()).room);
	const { room, swarm } = await open({ layers: [2], checkPartials: true });
	swarm.spoil = (answer, { phase }) => {
		if (phase !== "decode") return;
		answer.worker[1] = 1;
		answer.vectors[256 + 3]! += 100;
	};
	const remote = await run(room);
	expect(Buffer.from(remote.logitsSha256!)).not.toEqual(Buffer.from(local.logitsSha256!));
	const partials = room.report().partials!;
	expect(partials.pairs - partials.identical).toBe(maxTokens - 1);
	expect(partials.worst).toBeGreaterThan(0.04);
	const { rowIndex: _, ...first } = { rowIndex: 0, ...partials.first! };
	expect(first).toMatchObject({ layer: 2, position: prompt.length, worker: "worker-b", component: 3 });
	expect(first.remote - first.local).toBeCloseTo(100, 3);
});

test("with require, a pair nobody answered ends the text", async () => {
	const { room, swarm } = await open({ layers: [1], require: true });
	swarm.spoil = (answer) => answer.worker.fill(-1, 0, 1);
	await expect(run(room)).rejects.toMatchObject({ code: "remote_required", facts: { layer: 1, pairs: 1 } });
});

test("prompt rows stay here when told so", async () => {
	const local = await run((await open()).room);
	const { room, swarm } = await open({ layers: "all", prefill: false });
	const remote = await run(room);
	expect(Buffer.from(remote.logitsSha256!)).toEqual(Buffer.from(local.logitsSha256!));
	expect(room.report().remote!.asked).toBe((maxTokens - 1) * 4 * topK);
	expect(swarm.requests.every(({ phase, rowCount }) => phase === "decode" && rowCount === 1)).toBe(true);
});

test("a layer the model does not have is refused", async () => {
	await expect(open({ layers: [4] })).rejects.toMatchObject({ code: "usage" });
});

test("a swarm that fails ends the text with its error, and the next text is decoded", async () => {
	const { room, swarm } = await open({ layers: [0] });
	let calls = 0;
	swarm.spoil = () => {
		if (++calls === 3) throw new Error("the backbone is closing");
	};
	await expect(run(room)).rejects.toThrow("closing");
	expect((await run(room)).tokens.length).toBe(maxTokens);
});
