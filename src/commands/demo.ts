import { formatFacts, formatTable } from "../ui/table.ts";
import { modelOptions } from "./model/model-options.ts";
import { defineCommand, type Outcome } from "./program/command.ts";
import { value } from "./program/options.ts";
import { count, text } from "./program/readers.ts";
import type { DemoReport } from "./run-demo.ts";

const { engine } = modelOptions;

export const demoCommand = defineCommand({
	path: "demo",
	section: "demo",
	summary: "everything on loopback with the fixture model: gateway, hub, backbone and two workers",
	options: {
		engine,
		prompt: value("--prompt <text>", "what to decode", text, "The capital of France is"),
		tokens: value("--tokens <n>", "tokens to generate", count(1, 1024), 16),
	},
	example: "kvasir demo --json",
	async run(context, options): Promise<Outcome<DemoReport>> {
		const [{ runDemo }, { exitCodeOf }] = await Promise.all([import("./run-demo.ts"), import("../verify/verdict.ts")]);
		const data = await context.progress("starting a swarm", (say) => runDemo(context, options, say));
		return { data, exitCode: exitCodeOf(data.verdict) };
	},
	render(data) {
		const facts = formatFacts([
			["text", data.text],
			[
				"tokens",
				`${data.tokens.same} of ${data.tokens.total} the same as a local run, logits ${data.logits.identical ? "identical" : "different"}`,
			],
			[
				"experts",
				`${data.remote.answered} of ${data.remote.asked} pairs computed by workers, ${data.remote.fallback} here`,
			],
			["took", `${data.seconds.toFixed(1)} s, ${data.processes} processes`],
		]);
		const rows = data.workers.map((worker) => [worker.address, worker.pairs, worker.units, worker.pendingKvr]);
		return `${facts}\n\n${formatTable(["worker's wallet", "pairs", "units", "pending KVR"], rows)}\n\nverdict: ${data.verdict}`;
	},
});
