import type { PathBench } from "../../bench/path.ts";
import { formatMs } from "../../io/format-amounts.ts";
import { formatTable } from "../../ui/table.ts";
import { modelOptions } from "../model/model-options.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import { list, type OptionValues, value } from "../program/options.ts";
import { count, decimal, text } from "../program/readers.ts";

const options = {
	...modelOptions,
	prompt: value("--prompt <text>", "what the texts begin with", text, "The capital of France is"),
	tokens: value("--tokens <n>", "tokens decoded in each measurement", count(1, 100_000), 16),
	batches: list("--batch <n>", "texts decoded together; repeatable; 1 and 8 without it", count(1, 1024)),
	workers: value("--workers <n>", "worker processes", count(1, 64), 1),
	rtt: value("--rtt <ms>", "round trip between workers and gateway", decimal(0, 10_000), 13),
};

export type BenchPathOptions = OptionValues<typeof options>;

export const benchPathCommand = defineCommand({
	path: "bench path",
	section: "bench-path",
	summary: "what the way to the workers costs, through gateway and hub",
	options,
	example: "kvasir bench path --rtt 13 --batch 1 --batch 8",
	async run(context, chosen): Promise<Outcome<PathBench>> {
		const { runBenchPath } = await import("./run-bench-path.ts");
		return { data: await context.progress("measuring", () => runBenchPath(context, chosen)) };
	},
	render({ model, engineClass, layers, rttMs, measurements, oneLayer, throughput }) {
		const head = ["remote layers", "batch", "step", "tokens/s", "of local", "trips", "wait", "wire", "compute"];
		const rows = measurements.map((line) => [
			`${line.remoteLayers} of ${layers}`,
			line.batch,
			formatMs(line.msPerStep),
			line.tokensPerSecond.toFixed(1),
			`${(100 * line.tokensPerSecondRatio).toFixed(0)}%`,
			line.roundTripsPerStep.toFixed(1),
			...[line.layerMs.wait, line.layerMs.wire, line.layerMs.compute].map(formatMs),
		]);
		const lines = [
			`${model}, engine ${engineClass}, round trips of ${formatMs(rttMs)}; wait, wire and compute of one remote layer`,
			`\n${formatTable(head, rows)}\n`,
			`one remote layer adds ${formatMs(oneLayer.addedMs)} to a token (aim: at most ${formatMs(oneLayer.aimMs)})`,
		];
		if (throughput !== null)
			lines.push(`${throughput.batch} texts: ${throughput.ratio.toFixed(1)} times the tokens of one`);
		return lines.join("\n");
	},
});
