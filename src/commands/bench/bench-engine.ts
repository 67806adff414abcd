import type { EngineBench } from "../../bench/engine.ts";
import type { GpuBench, GpuBenchOptions } from "../../bench/engine-gpu.ts";
import { formatCount, formatMs } from "../../io/format-amounts.ts";
import { formatTable } from "../../ui/table.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import type { Context } from "../program/context.ts";
import { list, value } from "../program/options.ts";
import { count, gpuDevice, oneOf } from "../program/readers.ts";

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
		gpu: value("--gpu [device]", "whole experts on a GPU, beside one CPU core: auto or webgpu:ID", gpuDevice),
		lineMs: value("--line-ms <ms>", "time spent on a line", count(1, 60_000), 250),
	},
	example: "kvasir bench engine --type Q4_K --rows 1 --rows 8",
	async run(context, { types, rows, gpu, lineMs }): Promise<Outcome<EngineBench | GpuBench>> {
		const chosen = { ...(types.length > 0 && { types }), ...(rows.length > 0 && { rows }) };
		const { clock, signal } = context;
		if (gpu !== undefined) return { data: await benchOnGpu(context, gpu, { ...chosen, lineMs, clock, signal }) };
		const { benchEngine } = await import("../../bench/engine.ts");
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
	render(data) {
		if ("adapter" in data) return renderGpu(data);
		const rows = data.lines.flatMap(({ type, outputs, inputs, rows: count, engines }) =>
			Object.entries(engines).map(([engine, figures]) => [
				...[type, `${outputs} x ${inputs}`, count, engine, formatMs(figures.ms)],
				...[figures.gigabytesPerSecond.toFixed(1), figures.gigaflops.toFixed(1), figures.ratio.toFixed(2)],
			]),
		);
		return formatTable(["type", "matrix", "rows", "engine", "a call", "GB/s", "GFLOP/s", "ratio"], rows);
	},
});

async function benchOnGpu(context: Context, gpu: string, options: Omit<GpuBenchOptions, "adapter">): Promise<GpuBench> {
	const { pickAdapter } = await import("../../experts/gpu/pick-adapter.ts");
	const { benchGpu } = await import("../../bench/engine-gpu.ts");
	const { id } = await pickAdapter(gpu, context.clock);
	return context.progress("measuring", (say) =>
		benchGpu({
			...options,
			adapter: id,
			onLine: ({ type, experts, rows }) => say(`measured ${experts} experts of ${type}, ${rows} rows`),
		}),
	);
}

function renderGpu({ adapter, lines }: GpuBench): string {
	const rows = lines.flatMap(({ type, experts, rows: count, device, cpu }) =>
		(
			[
				[adapter.name, device],
				["one CPU core", cpu],
			] as const
		).map(([engine, { ms, pairsPerSecond, gigabytesPerSecond }]) => [
			...[type, experts, count, engine, formatMs(ms), formatCount(Math.round(pairsPerSecond))],
			...[gigabytesPerSecond.toFixed(1), (cpu.ms / ms).toFixed(2)],
		]),
	);
	return formatTable(["type", "experts", "rows", "engine", "a call", "pairs/s", "GB/s", "ratio"], rows);
}
