import type { DecodeBench } from "../../bench/decode.ts";
import { formatMs } from "../../io/format-amounts.ts";
import { formatTable } from "../../ui/table.ts";
import { modelOptions } from "../model/model-options.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import { list, type OptionValues, value } from "../program/options.ts";
import { count, text } from "../program/readers.ts";

const options = {
	...modelOptions,
	prompt: value("--prompt <text>", "what the texts begin with", text, "The capital of France is"),
	tokens: value("--tokens <n>", "tokens decoded in each measurement", count(1, 100_000), 64),
	batches: list("--batch <n>", "texts decoded together; repeatable; 1 without it", count(1, 256)),
	workers: value("--workers <n>", "worker processes for the remote half; 0 measures only local", count(0, 64), 2),
};

export type BenchDecodeOptions = OptionValues<typeof options>;

export const benchDecodeCommand = defineCommand({
	path: "bench decode",
	section: "bench-decode",
	summary: "milliseconds per token, local and remote, and where they go",
	options,
	example: "kvasir bench decode --tokens 64 --workers 2",
	async run(context, chosen): Promise<Outcome<DecodeBench>> {
		const { runBenchDecode } = await import("./run-bench-decode.ts");
		return { data: await context.progress("measuring", () => runBenchDecode(context, chosen)) };
	},
	render({ model, engineClass, threads, prefillTokensPerSecond, measurements }) {
		const head = [
			"experts",
			"batch",
			"step",
			"tokens/s",
			"mixer",
			"matrices",
			"router",
			"experts",
			"wait",
			"head",
			"rest",
		];
		const rows = measurements.map(({ experts, batch, msPerStep, tokensPerSecond, stepMs }) => {
			const { mixerMs, matricesMs, routerMs, expertsMs, waitMs, headMs, restMs } = stepMs;
			const parts = [mixerMs, matricesMs, routerMs, expertsMs, waitMs, headMs, restMs].map(formatMs);
			return [experts, batch, formatMs(msPerStep), tokensPerSecond.toFixed(1), ...parts];
		});
		const title = `${model}, engine ${engineClass}, ${threads} threads, prefill ${prefillTokensPerSecond.toFixed(0)} tokens/s`;
		return `${title}\n\n${formatTable(head, rows)}`;
	},
});
