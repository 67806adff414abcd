import { expect, onTestFinished, test, vi } from "vitest";
import { EngineRemote } from "../../../test/support/engine-remote.ts";
import { packagePath } from "../../io/built.ts";
import { type DecodeRoom, openDecodeRoom } from "./decode-room.ts";
import type { GenerationRequest } from "./generation.ts";
import { greedy } from "./sampler.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const prompt = [267, 270, 262, 374, 394, 371, 257]; // "The capital of France is"
const answer = [337, 317, 256, 13]; // " Paris."

async function open(scheduler = {}, more = {}): Promise<DecodeRoom> {
	const room = await openDecodeRoom({ home: "", model: tiny, engine: "f32", scheduler, ...more });
	onTestFinished(() => room.close());
	return room;
}

const request = (more: Partial<GenerationRequest> = {}): GenerationRequest => ({
	prompt,
	maxTokens: 4,
	sampling: greedy,
	...more,
});

test("tokens stream out as they are chosen; the length ends the text", async () => {
	const { scheduler } = await open();
	const streamed: [number, number][] = [];
	const result = await scheduler.generate(request(), { onToken: (token, index) => streamed.push([index, token]) });
	expect(result).toMatchObject({ tokens: answer, finish: "length", positions: 0, logits: null, logitsSha256: null });
	expect(streamed).toEqual(answer.map((token, index) => [index, token]));
});

test("a stop token ends the text and is left out", async () => {
	const { scheduler } = await open();
	const result = await scheduler.generate(request({ stopTokens: [13], maxTokens: 50 }));
	expect(result).toMatchObject({ tokens: answer.slice(0, 3), finish: "stop" });
});

test("texts that come and go decode together as they do alone, byte for byte", async () => {
	const { scheduler } = await open({ activeMost: 3 });
	const requests = Array.from({ length: 7 }, (_, i) =>
		request({
			prompt: [...prompt.slice(i % 3), ...prompt.slice(0, i % 3)],
			maxTokens: 2 + i,
			sampling: { temperature: 1.5, topK: 20, seed: i },
			logits: "digest",
		}),
	);
	const together = await Promise.all(requests.map((each) => scheduler.generate(each)));
	for (const [i, each] of requests.entries()) {
		expect(await scheduler.generate(each)).toEqual({ ...together[i], sequence: expect.any(Number) });
	}
	expect(new Set(together.map(({ tokens }) => tokens.join())).size).toBe(7);
});

test("logits of every position are kept and digested: prompt rows, then those of the tokens fed", async () => {
	const { scheduler } = await open();
	const kept = await scheduler.generate(request({ logits: "keep" }));
	expect(kept.positions).toBe(prompt.length + 3);
	expect(kept.logits!.length).toBe(kept.positions * 512);
	const digested = await scheduler.generate(request({ logits: "digest" }));
	expect(digested).toEqual({ ...kept, sequence: kept.sequence! + 1, logits: null });
	const last = kept.logits!.subarray((prompt.length - 1) * 512, prompt.length * 512);
	expect(last.indexOf(Math.max(...last))).toBe(answer[0]);
});

test("teacher forcing takes the given tokens whatever the logits say", async () => {
	const { scheduler } = await open();
	const forced = [1, 2, 3];
	const result = await scheduler.generate(request({ forced, maxTokens: 9, stopTokens: [511] }));
	expect(result).toMatchObject({ tokens: forced, finish: "length" });
});

test("an abort ends the text where it is; the others go on", async () => {
	const { scheduler } = await open();
	const abort = new AbortController();
	const onToken = (_: number, index: number) => {
		if (index === 1) abort.abort();
	};
	const [aborted, other] = await Promise.all([
		scheduler.generate(request({ maxTokens: 100 }), { signal: abort.signal, onToken }),
		scheduler.generate(request()),
	]);
	expect(aborted).toMatchObject({ tokens: answer.slice(0, 2), finish: "aborted" });
	expect(other).toMatchObject({ tokens: answer, finish: "length" });
	const before = await scheduler.generate(request(), { signal: AbortSignal.abort() });
	expect(before).toMatchObject({ tokens: [], finish: "aborted" });
});

test("an abort reaches a text that still waits", async () => {
	const { scheduler } = await open({ activeMost: 1 });
	const abort = new AbortController();
	let ended = "";
	const first = scheduler.generate(request({ maxTokens: 20 }), {
		onToken: (_, index) => index === 3 && abort.abort(),
	});
	const second = scheduler.generate(request(), { signal: abort.signal });
	first.then(() => {
		ended ||= "first";
	});
	expect(await second).toMatchObject({ tokens: [], finish: "aborted" });
	expect(ended).toBe("");
	expect((await first).tokens.length).toBe(20);
});

test("a new text may be asked for the moment the last one ends", async () => {
	const { scheduler } = await open();
	for (let i = 0; i < 3; i++) expect((await scheduler.generate(request({ maxTokens: 1 }))).tokens).toEqual([337]);
});

test("the context bounds a text; the last token may lie just beyond it", async () => {
	const { scheduler, decoder } = await open();
	const { contextLength } = decoder.model.shape;
	const long = Array.from({ length: contextLength - 2 }, (_, i) => i % 500);
	const result = await scheduler.generate(request({ prompt: long, maxTokens: 100 }));
	expect(result).toMatchObject({ finish: "length" });
	expect(result.tokens.length).toBe(3);
	const beyond = request({ prompt: [...long, 1, 2, 3] });
	await expect(scheduler.generate(beyond)).rejects.toMatchObject({ code: "usage" });
});

test("refuses what cannot be, and more than may wait", async () => {
	const { scheduler } = await open({ activeMost: 1, waitingMost: 2 });
	await expect(scheduler.generate(request({ prompt: [] }))).rejects.toMatchObject({ code: "usage" });
	await expect(scheduler.generate(request({ maxTokens: 0 }))).rejects.toMatchObject({ code: "usage" });
	const sampling = { temperature: -1 };
	await expect(scheduler.generate(request({ sampling }))).rejects.toMatchObject({ code: "usage" });
	await expect(scheduler.generate(request({ prompt: [512] }))).rejects.toMatchObject({ code: "bounds" });
	await expect(scheduler.generate(request({ forced: [-1] }))).rejects.toMatchObject({ code: "bounds" });
	const accepted = [scheduler.generate(request()), scheduler.generate(request())];
	await expect(scheduler.generate(request())).rejects.toMatchObject({ code: "refused" });
	for (const { tokens } of await Promise.all(accepted)) expect(tokens).toEqual(answer);
});

test("closing ends running and waiting texts as aborted", async () => {
	const { scheduler } = await open({ activeMost: 1 });
	const texts = [scheduler.generate(request({ maxTokens: 1000 })), scheduler.generate(request())];
	await scheduler.close();
	for (const { finish } of await Promise.all(texts)) expect(finish).toBe("aborted");
	await expect(scheduler.generate(request())).rejects.toMatchObject({ code: "closed" });
});

test("what texts remember is given back when they end, are aborted, or their step failed", async () => {
	const { scheduler, decoder } = await open({ activeMost: 5 });
	const abort = new AbortController();
	let most = 0;
	const onToken = () => {
		most = Math.max(most, decoder.bytesRemembered);
	};
	const texts = Array.from({ length: 12 }, (_, i) =>
		i % 3 === 0
			? scheduler.generate(request({ maxTokens: 200 }), {
					signal: abort.signal,
					onToken: () => i === 9 && abort.abort(),
				})
			: scheduler.generate(request(), { onToken }),
	);
	await Promise.all(texts);
	expect(most).toBeGreaterThan(0);
	expect(decoder.bytesRemembered).toBe(0);
	const compute = vi.spyOn(decoder.local, "compute").mockRejectedValue(new Error("broken"));
	await expect(Promise.all([scheduler.generate(request()), scheduler.generate(request())])).rejects.toThrow("broken");
	compute.mockRestore();
	expect(decoder.bytesRemembered).toBe(0);
	expect(await scheduler.generate(request())).toMatchObject({ tokens: answer });
});

test("a text that nothing is left for ends with out_of_memory, the others go on", async () => {
	const { scheduler, decoder } = await open({}, { textBytes: 5 * 2 ** 20 });
	const long = Array.from({ length: 1500 }, (_, i) => i % 500);
	const texts = [request(), request({ prompt: long }), request({ prompt: long }), request({ prompt: long })];
	const [short, ...others] = await Promise.allSettled(texts.map((text) => scheduler.generate(text)));
	expect(short).toMatchObject({ value: { tokens: answer } });
	expect(others).toContainEqual({ status: "rejected", reason: expect.objectContaining({ code: "out_of_memory" }) });
	expect(others).toContainEqual(expect.objectContaining({ status: "fulfilled" }));
	expect(decoder.bytesRemembered).toBe(0);
});

test("with workers, many texts are in several steps at once: one is computed while the experts of another are away", async () => {
	const swarm = await EngineRemote.open(tiny);
	onTestFinished(() => swarm.close());
	const answer = swarm.request.bind(swarm);
	const held: (() => void)[] = [];
	// Nothing is answered before a second step has asked.
	swarm.request = async (asked) => {
		const answered = await answer(asked);
		if (held.length === 0 && swarm.requests.length < 2) await new Promise<void>((release) => held.push(release));
		else for (const release of held.splice(0)) release();
		return answered;
	};
	const settings = { home: "", model: tiny, engine: "f32" } as const;
	const scheduler = { activeMost: 64, stepsMost: 2 };
	const room = await openDecodeRoom({ ...settings, scheduler, remote: { layers: "all" } }, swarm);
	onTestFinished(() => room.close());
	const requests = Array.from({ length: 64 }, (_, i) => request({ prompt: [i + 1, 270, 262], logits: "digest" }));
	const together = await Promise.all(requests.map((each) => room.scheduler.generate(each)));
	expect(swarm.requests.slice(0, 2).map(({ sequence }) => new Set(sequence).size)).toEqual([32, 32]);
	const alone = (await open()).scheduler;
	for (const i of [0, 31, 32, 63]) {
		expect(await alone.generate(requests[i]!)).toEqual({ ...together[i], sequence: expect.any(Number) });
	}
});

test("a step that fails takes its own texts with it, not those of another step", async () => {
	const swarm = await EngineRemote.open(tiny);
	onTestFinished(() => swarm.close());
	const answer = swarm.request.bind(swarm);
	swarm.request = (asked) => (asked.sequence.includes(1) ? Promise.reject(new Error("lost")) : answer(asked));
	const settings = { home: "", model: tiny, engine: "f32", remote: { layers: "all" } } as const;
	const room = await openDecodeRoom({ ...settings, scheduler: { activeMost: 64, stepsMost: 2 } }, swarm);
	onTestFinished(() => room.close());
	const texts = await Promise.allSettled(Array.from({ length: 64 }, () => room.scheduler.generate(request())));
	expect(texts.map(({ status }) => status)).toEqual([...Array(32).fill("rejected"), ...Array(32).fill("fulfilled")]);
	expect(room.decoder.bytesRemembered).toBe(0);
});
