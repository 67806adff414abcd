import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerBench } from "../../bench/ledger.ts";
import { makePrivateFolder } from "../../io/files.ts";
import { formatTable } from "../../ui/table.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import { value } from "../program/options.ts";
import { count, path } from "../program/readers.ts";

export const benchLedgerCommand = defineCommand({
	path: "bench ledger",
	section: "bench-ledger",
	summary: "receipts a second that the hub stores and the gateway credits, each on disk before it is acknowledged",
	options: {
		receipts: value("--receipts <n>", "countersigned receipts in all", count(2, 1_000_000), 8_000),
		sessions: value("--sessions <n>", "sessions they are of", count(1, 10_000), 100),
		folder: value(
			"--folder <path>",
			"make the two SQLite files here, on the disk that is meant; else in the home",
			path,
		),
	},
	example: "kvasir bench ledger --receipts 20000",
	async run(context, { receipts, sessions, folder: chosen }): Promise<Outcome<LedgerBench>> {
		const { benchLedger } = await import("../../bench/ledger.ts");
		const { clock, random, signal, home, host } = context;
		const folder = await mkdtemp(join(await makePrivateFolder(chosen ?? home), "bench-ledger-"));
		try {
			const bench = { receipts, sessions, folder, cpuMs: () => host.cpuMs(), clock, random, signal };
			return { data: await context.progress("measuring", () => benchLedger(bench)) };
		} finally {
			await rm(folder, { recursive: true, force: true });
		}
	},
	render({ lines }) {
		const rows = lines.map(({ part, receipts, perSecond, cpuMsPerReceipt }) => [
			...[part, receipts, Math.round(perSecond), `${cpuMsPerReceipt.toFixed(2)} ms`],
		]);
		return formatTable(["part", "receipts", "a second", "CPU a receipt"], rows);
	},
});
