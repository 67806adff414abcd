import { formatTable } from "../../ui/table.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import { value } from "../program/options.ts";
import { count, decimal } from "../program/readers.ts";
import type { SpliceBench } from "./run-bench-splice.ts";

export const benchSpliceCommand = defineCommand({
	path: "bench splice",
	section: "bench-splice",
	summary: "processor time and memory that gateway and hub take for what they carry, beside nginx for the same",
	options: {
		gigabytes: value(
			"--gigabytes <n>",
			"WebSocket payload over each path, both ways together; 0: none",
			decimal(0, 1_000),
			2,
		),
		links: value("--links <n>", "idle worker links to keep for a while; 0: none", count(0, 8_000), 0),
		watch: value("--watch <seconds>", "how long the idle links are watched", count(1, 3_600), 45),
	},
	example: "kvasir bench splice --links 2000",
	async run(context, { gigabytes, links, watch }): Promise<Outcome<SpliceBench>> {
		const { runBenchSplice } = await import("./run-bench-splice.ts");
		const choice = { gigabytes, links, watchSeconds: watch };
		return { data: await context.progress("measuring", () => runBenchSplice(context, choice)) };
	},
	render({ traffic, ratio, idle }) {
		const parts: string[] = [];
		if (traffic.length > 0) {
			const rows = traffic.map(({ path, cpuSecondsPerGb, each, gbPerSecond }) => [
				path,
				cpuSecondsPerGb.toFixed(2),
				each.map((own) => own.toFixed(2)).join(" + "),
				gbPerSecond.toFixed(2),
			]);
			parts.push(formatTable(["path", "CPU s a GB", "by process", "GB/s"], rows));
			parts.push(
				ratio === null ? "nginx is not installed: nothing to compare with" : `${ratio.toFixed(2)} times nginx's`,
			);
		}
		if (idle !== null) {
			const rows = idle.carriers.map(({ name, bytesPerLink, cores }) => [
				name,
				`${(bytesPerLink / 1024).toFixed(1)} KiB`,
				`${(100 * cores).toFixed(1)}%`,
			]);
			parts.push(`${idle.links} idle links, ${idle.lost} lost`);
			parts.push(formatTable(["process", "memory a link", "of a core"], rows));
		}
		return parts.join("\n\n");
	},
});
