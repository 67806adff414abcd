import { request as httpRequest } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { systemClock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import { systemRandom } from "../../io/random.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { tokenizerOf } from "../../model/tokenizer.ts";
import { type DecodeRoom, openDecodeRoom } from "../decode/decode-room.ts";
import type { ApiModel } from "./api-generate.ts";
import { type ApiOptions, type ApiServer, startApi } from "./api-server.ts";

let api: ApiServer;
let room: DecodeRoom;
afterEach(async () => {
	await api.close();
	await room.close();
});

const prompt = "The capital of France is";

/** The fixture model behind the API, decoding for real. */
async function start(options: Partial<ApiOptions> = {}, change: Partial<ApiModel> = {}): Promise<void> {
	const home = await temporaryHome();
	room = await openDecodeRoom({ home, model: "tiny", engine: "f32" });
	const { metadata, weights } = await openNamedModel(home, "tiny");
	await weights.close();
	api = await startApi({
		model: {
			name: "tiny",
			contextLength: room.facts.shape.contextLength,
			metadata,
			tokenizer: tokenizerOf(metadata),
			generate: (request, hooks) => room.scheduler.generate(request, hooks),
			...change,
		},
		listen: { host: "127.0.0.1", port: 0 },
		keys: [],
		clock: systemClock,
		random: systemRandom,
		log: silentLog,
		...options,
	});
}

const url = (path: string) => `http://127.0.0.1:${api.address.port}${path}`;
const post = (path: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) =>
	fetch(url(path), {
		method: "POST",
		headers: { "content-type": "application/json", ...headers },
		body: typeof body === "string" ? body : JSON.stringify(body),
		...(signal === undefined ? {} : { signal }),
	});
// biome-ignore lint/suspicious/noExplicitAny: answers are looked at by their fields
const json = async (response: Response): Promise<any> => response.json();
/** The data of each event. */
const events = async (response: Response): Promise<string[]> =>
	(await response.text()).split("\n\n").flatMap((event) => (event.startsWith("data: ") ? [event.slice(6)] : []));

describe("startApi()", () => {
	test("names its model", async () => {
		await start();
		expect((await json(await fetch(url("/v1/models")))).data).toMatchObject([{ id: "tiny", object: "model" }]);
		expect(await json(await fetch(url("/v1/models/tiny")))).toMatchObject({ id: "tiny" });
		expect((await fetch(url("/v1/models/other"))).status).toBe(404);
	});

	test("completes a prompt, and the same text streams", async () => {
		await start();
		const body = { model: "tiny", prompt, max_tokens: 8, temperature: 0 };
		const whole = await json(await post("/v1/completions", body));
		expect(whole).toMatchObject({
			object: "text_completion",
			choices: [{ index: 0, finish_reason: expect.any(String) }],
		});
		expect(whole.choices[0].text).toMatch(/^ Paris\./);
		expect(whole.usage.total_tokens).toBe(whole.usage.prompt_tokens + whole.usage.completion_tokens);
		const streamed = await post("/v1/completions", { ...body, stream: true, stream_options: { include_usage: true } });
		expect(streamed.headers.get("content-type")).toBe("text/event-stream");
		const data = await events(streamed);
		expect(data.pop()).toBe("[DONE]");
		const chunks = data.map((event) => JSON.parse(event));
		expect(chunks.at(-1).usage).toEqual(whole.usage);
		expect(chunks.flatMap(({ choices }) => choices.map(({ text }: { text: string }) => text)).join("")).toBe(
			whole.choices[0].text,
		);
	});

	test("several prompts of one request, and several requests, are decoded together and answered like one alone", async () => {
		await start();
		const ask = (prompts: string | string[]) =>
			post("/v1/completions", { prompt: prompts, max_tokens: 6, temperature: 0.8, seed: 5 }).then(json);
		const alone = await ask(prompt);
		const [both, again] = await Promise.all([ask([prompt, "Water boils at"]), ask(prompt)]);
		expect(both.choices.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
		expect(both.choices[0].text).toBe(alone.choices[0].text);
		expect(again.choices[0].text).toBe(alone.choices[0].text);
	});

	test("ends at a stop sequence, which is not part of the text, streamed or not", async () => {
		await start();
		const body = { prompt, max_tokens: 32, temperature: 0, stop: ["is."] };
		const free = await json(await post("/v1/completions", { ...body, stop: [] }));
		expect(free.choices[0].text).toContain("is.");
		const stopped = await json(await post("/v1/completions", body));
		expect(stopped.choices[0]).toMatchObject({ text: free.choices[0].text.split("is.")[0], finish_reason: "stop" });
		const chunks = (await events(await post("/v1/completions", { ...body, stream: true }))).slice(0, -1);
		const text = chunks.map((event) => JSON.parse(event).choices[0].text).join("");
		expect(text).toBe(stopped.choices[0].text);
	});

	test("answers a conversation by the model's own template, from the assistant's turn on", async () => {
		await start();
		const body = {
			messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
			max_tokens: 4,
			temperature: 0,
		};
		const whole = await json(await post("/v1/chat/completions", body));
		expect(whole).toMatchObject({ object: "chat.completion", choices: [{ message: { role: "assistant" } }] });
		const data = (await events(await post("/v1/chat/completions", { ...body, stream: true }))).map((event) =>
			event === "[DONE]" ? null : JSON.parse(event),
		);
		expect(data[0]).toMatchObject({ object: "chat.completion.chunk", choices: [{ delta: { role: "assistant" } }] });
		expect(data.at(-1)).toBeNull();
		expect(
			data
				.slice(0, -1)
				.map((event) => event.choices[0].delta.content ?? "")
				.join(""),
		).toBe(whole.choices[0].message.content);
		expect(data.at(-2).choices[0].finish_reason).toBe(whole.choices[0].finish_reason);
	});

	test.each([
		["no JSON", "{", 400, null],
		["no prompt", {}, 400, "prompt"],
		["a temperature below 0", { prompt, temperature: -1 }, 400, "temperature"],
		["what is not supported", { prompt, n: 2 }, 400, "n"],
		["logprobs", { prompt, logprobs: 5 }, 400, "logprobs"],
		["an unknown token", { prompt: [99_999_999] }, 400, null],
		["an empty prompt", { prompt: "" }, 400, null],
		["another model", { prompt, model: "gpt" }, 404, "model"],
	])("refuses %s", async (_, body, status, param) => {
		await start();
		const response = await post("/v1/completions", body);
		expect(response.status).toBe(status);
		expect((await json(response)).error).toMatchObject({ param, message: expect.stringMatching(/^Cannot /) });
	});

	test("with keys, only their holders; without, only requests addressed to this machine", async () => {
		await start({ keys: ["secret"] });
		expect((await post("/v1/completions", { prompt })).status).toBe(401);
		expect((await post("/v1/completions", { prompt }, { authorization: "Bearer wrong" })).status).toBe(401);
		const good = { prompt, max_tokens: 1 };
		expect((await post("/v1/completions", good, { authorization: "Bearer secret" })).status).toBe(200);
		await api.close();
		await room.close();
		await start();
		const status = await new Promise((resolve) => {
			httpRequest(url("/v1/models"), { headers: { host: "evil.example" } }, ({ statusCode }) =>
				resolve(statusCode),
			).end();
		});
		expect(status).toBe(403);
	});

	test("marks a text that used answers of a worker that failed an audit", async () => {
		await start({}, { isTainted: (sequence) => sequence === 2 });
		const body = { prompt, max_tokens: 1, temperature: 0 };
		expect((await json(await post("/v1/completions", body))).choices[0]).not.toHaveProperty("tainted");
		expect((await json(await post("/v1/completions", body))).choices[0]).toMatchObject({ tainted: true });
		await api.close();
		await room.close();
		await start({}, { isTainted: () => true });
		const data = await events(await post("/v1/completions", { ...body, stream: true }));
		expect(JSON.parse(data.at(-2)!).choices[0]).toMatchObject({ finish_reason: "length", tainted: true });
	});

	test("a client that leaves ends its text", async () => {
		let finish: (reason: string) => void;
		const finished = new Promise((resolve) => {
			finish = resolve;
		});
		await start(
			{},
			{
				async generate(request, hooks) {
					const result = await room.scheduler.generate(request, hooks);
					finish(result.finish);
					return result;
				},
			},
		);
		const leave = new AbortController();
		const body = { prompt, max_tokens: 100_000, temperature: 1, seed: 1, stream: true };
		const response = await post("/v1/completions", body, {}, leave.signal);
		await response.body!.getReader().read();
		leave.abort();
		expect(await finished).toBe("aborted");
	});

	test("closing ends a stream with an error event", async () => {
		await start();
		const response = await post("/v1/completions", {
			prompt,
			max_tokens: 100_000,
			temperature: 1,
			seed: 2,
			stream: true,
		});
		const text = events(response);
		await api.close();
		expect((await text).at(-2)).toContain('"code":"closed"');
	});
});
