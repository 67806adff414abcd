import { classPrefixes } from "../../backbone/links/engine-rules.ts";
import { KvasirError } from "../../errors.ts";
import { engineNames } from "../../experts/open-engine.ts";
import { keyOf } from "../../io/base58.ts";
import { makePrivateFolder } from "../../io/files.ts";
import { modelOptions } from "../model/model-options.ts";
import { defineCommand } from "../program/command.ts";
import { dialAt, listenAt } from "../program/listen-at.ts";
import { list, toggle, value } from "../program/options.ts";
import { address, byteSize, count, decimal, hostPort, layers, oneOf, path, text } from "../program/readers.ts";
import { untilStopped } from "../program/until-stopped.ts";
import { decodePrompts, describeRun } from "./decode-prompts.ts";
import { runRepl } from "./repl.ts";
import { openApi, readApiKeys } from "./serve-api.ts";
import { reportEvents } from "./swarm-events.ts";
import { untilParked } from "./until-parked.ts";

/** Of the memory that is free at the start: experts that are loaded on first use take the rest. */
const textShare = 0.5;

export const backboneDispatchCommand = defineCommand({
	path: "backbone dispatch",
	section: "backbone",
	summary: "decode with the routed experts computed by workers",
	options: {
		...modelOptions,
		hub: value("--hub <host:port>", "park connections at this hub's relay port", hostPort),
		park: value("--park <n>", "connections kept parked", count(1, 64), 4),
		listen: value("--listen <host:port>", "let a hub dial this address instead (serve-hub --dispatch)", hostPort),
		prompts: list("--prompt <text>", "decode this and end; repeatable, then they are decoded together", text),
		repl: toggle("--repl", "decode what is typed, line by line"),
		api: value("--api <host:port>", "serve an OpenAI-style API here, until stopped", hostPort),
		apiKeys: value("--api-key-file <file>", "keys of the API, one a line; needed beyond this machine", path),
		tokens: value("--tokens <n>", "most tokens to generate", count(1, 1_000_000), 64),
		temperature: value("--temperature <t>", "0 is greedy", decimal(0, 100), 0),
		topK: value("--top-k <k>", "sample from the k most likely tokens, 0 from all", count(0, 1_000_000), 0),
		topP: value("--top-p <p>", "sample from the most likely tokens that reach this probability", decimal(0, 1), 1),
		seed: value("--seed <n>", "the same seed gives the same tokens", count(0, Number.MAX_SAFE_INTEGER), 0),
		accept: list(
			"--accept <engine>",
			"also take workers with this engine; else only those with ours",
			oneOf(...engineNames),
		),
		vouch: list("--vouch <key>", "another backbone that our workers may serve too (verify --hub); repeatable", address),
		remote: value("--remote <layers>", "layers whose experts are asked of workers", layers, "all"),
		requireRemote: toggle("--require-remote", "fail rather than compute an expert here"),
		prefill: value(
			"--prefill <where>",
			"where the prompt's rows are computed; auto: here, where every expert is",
			oneOf("local", "remote", "auto"),
			"auto",
		),
		texts: value("--texts <n>", "most texts decoded together; others wait", count(1, 1024), 16),
		textMemory: value(
			"--text-memory <size>",
			"most bytes that texts being decoded may remember; half of what is free without it",
			byteSize,
		),
		wait: value("--wait <seconds>", "wait this long for workers to hold every expert", count(0, 86_400), 10),
	},
	example: 'kvasir backbone dispatch --hub 127.0.0.1:7301 --prompt "The capital of France is"',
	async run(context, options) {
		if (options.prompts.length === 0 && !options.repl && !options.api) {
			throw new KvasirError("usage", "Cannot dispatch: nothing to decode", {
				hint: "Say --prompt TEXT, --repl or --api",
			});
		}
		const apiKeys = options.api ? await readApiKeys(options.api, options.apiKeys) : [];
		const { openDispatch } = await import("./open-dispatch.ts");
		const { engine, threads, model, memory, requireRemote } = options;
		const remote = { layers: options.remote, require: requireRemote, prefill: options.prefill === "remote" };
		const room = await context.progress(`loading ${model}`, async () =>
			openDispatch(
				context,
				{
					home: await makePrivateFolder(context.home),
					model,
					engine,
					threads,
					...(memory && { memoryBytes: memory }),
					textBytes: options.textMemory ?? Math.floor(context.host.availableMemory() * textShare),
					scheduler: { activeMost: options.texts },
					remote,
				},
				{
					accepts: [engine, ...options.accept].map((name) => classPrefixes[name]),
					park: options.park,
					vouchesFor: options.vouch.map(keyOf),
					...(options.hub && { hub: dialAt(options.hub) }),
					...(options.listen && { listen: listenAt(options.listen) }),
				},
			),
		);
		const offHangup = context.onHangup(() => room.backbone.redial());
		try {
			const tellEvents = reportEvents(context, room);
			await untilParked(context, room.backbone, { required: requireRemote });
			const api = options.api ? await openApi(context, room, { listen: options.api, keys: apiKeys }) : null;
			tellEvents();
			const ask = { ...options, waitMs: options.wait * 1000 };
			if (api !== null) {
				context.emit({ event: "api", port: api.port }, `API: ${api.url}`);
				await untilStopped(context);
				await api.close();
				return {};
			}
			if (options.prompts.length === 0) return await runRepl(context, room, ask);
			const run = await decodePrompts(context, room, options.prompts, ask);
			context.emit({ event: "done", ...run }, describeRun(run));
			return {};
		} finally {
			offHangup();
			await room.close(context.signal.aborted ? "stopped" : "done");
		}
	},
});
