import { readdir } from "node:fs/promises";
import { expect, it } from "vitest";
import { processesNaming } from "../support/leaks.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";

interface DemoWorker {
	address: string;
	pairs: number;
	servedBytes: number;
	units: string;
	pendingKvr: string;
	nano: string;
}

const hidden = 256;
const secondsMost = 20;

it("kvasir demo --json decodes through five processes as a local run does, and the workers are paid", async () => {
	// The demo's own folder lies in here, so that anything it leaves shows.
	const folder = await temporaryHome();
	const { code, stdout, stderr, json } = await runCli(["demo", "--json"], {
		env: { TMPDIR: folder },
		deadlineMs: 60_000,
	});
	expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
	expect(stdout.trim().split("\n")).toHaveLength(1);
	const { ok, data } = json();
	expect(ok).toBe(true);
	expect(data.text).toMatch(/^ Paris\./);
	expect(data).toMatchObject({
		tokens: { same: 16, total: 16 },
		logits: { identical: true },
		verdict: "identical",
		processes: 5,
	});
	const { asked, answered, fallback } = data.remote;
	expect({ answered, fallback }).toEqual({ answered: asked, fallback: 0 });
	// (prompt positions + fed tokens) x layers x top-k
	expect(asked).toBe((7 + 15) * 4 * 4);
	const workers = data.workers as DemoWorker[];
	expect(workers).toHaveLength(2);
	expect(workers.reduce((sum, { pairs }) => sum + pairs, 0)).toBe(asked);
	for (const worker of workers) {
		const bytes = worker.pairs * hidden * 4;
		expect(worker.pairs).toBeGreaterThan(0);
		expect(worker.servedBytes).toBe(bytes);
		expect(worker.nano).toBe(String(bytes * 7));
		expect(Number(worker.pendingKvr)).toBeCloseTo((bytes / 1e6) * 0.007, 12);
		expect(Number(worker.units)).toBeCloseTo(bytes / 1e6, 12);
	}
	expect(data.seconds).toBeLessThan(secondsMost);
	expect(await readdir(folder)).toEqual([]);
	expect(await processesNaming(folder)).toEqual([]);
});

it("kvasir demo leaves nothing behind when it is stopped in the middle", async () => {
	const folder = await temporaryHome();
	const { startCli, resultOf } = await import("../support/run-cli.ts");
	const args = ["demo", "--json"];
	const child = startCli(args, { env: { TMPDIR: folder } });
	const ended = resultOf(child, args, 60_000);
	const { until } = await import("../support/until.ts");
	await until(async () => (await processesNaming(folder)).length >= 2, "the swarm to start");
	child.kill("SIGTERM");
	expect((await ended).code).toBe(143);
	expect(await readdir(folder)).toEqual([]);
	expect(await processesNaming(folder)).toEqual([]);
});
