import type { EngineBench } from "../bench/engine.ts";
import { formatMs } from "../io/format-amounts.ts";
import { formatTable } from "../ui/table.ts";
import { defineCommand, type Outcome } from "./command.ts";
import { list, value } from "./options.ts";
import { count, oneOf } from "./readers.ts";

export const benchEngineCommand = defineCommand({
	path: "bench engine",
	section: "bench-engine",
	summary: "milliseconds per matrix and row, canonical against onnxruntime, weights streamed from memory",
	options: {
		types: list(
			"--type <type>",
			"a weight type; repeatable; all without it",
			oneOf("Q4_K", "Q5_K", "Q6_K", "Q8_0", "F32"),
		),
		rows: list("--rows <n>", "rows at once; repeatable; 1, 4, 8, 64, 512 without it", count(1, 4096)),
		lineMs: value("--line-ms <ms>", "time spent on a line", count(1, 60_000), 250),
	},
	example: "kvasir bench engine --type Q4_K --rows 1 --rows 8",
	async run(context, { types, rows, lineMs }): Promise<Outcome<EngineBench>> {
		const { benchEngine } = await import("../bench/engine.ts");
		const chosen = { ...(types.length > 0 && { types }), ...(rows.length > 0 && { rows }) };
		const { clock, signal } = context;
		const data = await context.progress("measuring", (say) =>
			benchEngine({
				...chosen,
				lineMs,
				clock,
				signal,
				onLine: (line) => say(`measured ${line.type} ${line.outputs} x ${line.inputs}, ${line.rows} rows`),
			}),
		);
		return { data };
	},
	render({ lines }) {
		const rows = lines.flatMap(({ type, outputs, inputs, rows: count, engines }) =>
			Object.entries(engines).map(([engine, figures]) => [
				...[type, `${outputs} x ${inputs}`, count, engine, formatMs(figures.ms)],
				...[figures.gigabytesPerSecond.toFixed(1), figures.gigaflops.toFixed(1), figures.ratio.toFixed(2)],
			]),
		);
		return formatTable(["type", "matrix", "rows", "engine", "a call", "GB/s", "GFLOP/s", "ratio"], rows);
	},
});
