import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { systemClock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import { systemRandom } from "../../io/random.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { tokenizerOf } from "../../model/tokenizer.ts";
import type { ApiModel } from "./api-generate.ts";
import { startApi } from "./api-server.ts";

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/** The API in front of a `generate` that is made up; posts to it on one connection. */
async function start(generate: ApiModel["generate"]) {
	const { metadata, weights } = await openNamedModel(await temporaryHome(), "tiny");
	await weights.close();
	const api = await startApi({
		model: { name: "tiny", contextLength: 2048, metadata, tokenizer: tokenizerOf(metadata), generate },
		listen: { host: "127.0.0.1", port: 0 },
		keys: [],
		clock: systemClock,
		random: systemRandom,
		log: silentLog,
	});
	onTestFinished(async () => {
		await api.close();
		agent.destroy();
	});
	return async (path: string, body: string): Promise<IncomingMessage> => {
		const asked = httpRequest({ agent, host: "127.0.0.1", port: api.address.port, path, method: "POST" });
		asked.end(body);
		return (await once(asked, "response"))[0];
	};
}

async function textOf(response: IncomingMessage): Promise<string> {
	response.setEncoding("utf8");
	let text = "";
	for await (const part of response) text += part;
	return text;
}

test("requests of megabytes that cannot be are refused at once, and the connection goes on or ends", async () => {
	const post = await start(() => expect.unreachable("nothing of this can be generated"));
	const many = (entry: string) => `[${Array.from({ length: 1_000_000 }, () => entry).join()}]`;
	const completions: [body: string, said: RegExp][] = [
		[`{"prompt":${many("1")}}`, /more tokens than the model's context/],
		[`{"prompt":${many("-1")}}`, /prompt/],
		[`{"prompt":${many('""')}}`, /prompt/],
		[`{"prompt":"x","stop":${many('""')}}`, /stop/],
		[`{"prompt":"x","logit_bias":{${Array.from({ length: 500_000 }, (_, i) => `"${i}":1`).join()}}}`, /logit_bias/],
		[JSON.stringify({ prompt: " a".repeat(2_000_000) }), /more tokens than the model's context/],
		[JSON.stringify({ prompt: "a".repeat(4_000_000) }), /a word of it/],
		[JSON.stringify({ prompt: "a".repeat(9_000_000) }), /more than 8388608 bytes/],
		["[".repeat(1_000_000), /not JSON/],
	];
	const chats: typeof completions = [
		[`{"messages":${many("{}")}}`, /messages/],
		[`{"messages":[{"role":"user","content":${many("{}")}}]}`, /messages/],
		[JSON.stringify({ messages: [{ role: "user", content: "<|im_end|>".repeat(500_000) }] }), /more tokens than/],
	];
	for (const [path, bodies] of [
		["/v1/completions", completions],
		["/v1/chat/completions", chats],
	] as const) {
		for (const [body, said] of bodies) {
			const startMs = performance.now();
			const response = await post(path, body);
			expect(await textOf(response)).toMatch(said);
			expect(response.statusCode).toBe(400);
			// The rest are tens of seconds where every entry is an issue, every word is encoded.
			expect(performance.now() - startMs, body.slice(0, 40)).toBeLessThan(10_000);
		}
	}
});

test("a client that does not read is cut off, not told that its text is complete", async () => {
	let aborted = false;
	const post = await start(async ({ prompt }, { onToken, signal }) => {
		while (signal?.aborted === false) {
			for (let i = 0; i < 1000; i++) onToken?.(prompt[0]!, i);
			await new Promise(setImmediate);
		}
		aborted = true;
		return { sequence: 1, tokens: [], finish: "aborted", positions: 0, logits: null, logitsSha256: null };
	});
	const response = await post(
		"/v1/completions",
		JSON.stringify({ prompt: "The", stream: true, max_tokens: 1_000_000 }),
	);
	await expect.poll(() => aborted, { timeout: 30_000 }).toBe(true);
	let text = "";
	const read = (async () => {
		for await (const part of response) text += part;
	})();
	await expect(read).rejects.toThrow("aborted");
	expect(text).not.toContain("[DONE]");
	expect(text).not.toContain('"finish_reason":"stop"');
});
