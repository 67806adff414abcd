import { readdir, readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { runCli, startCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { until } from "../support/until.ts";

const secondsMost = 60;
const bytesMost = 4e9;
const args = ["verify", "--model", "122b", "--json"];

describe("kvasir verify --model 122b, where no weights are registered", () => {
	it("is identical, with exactly the pairs, bytes and KVR of the true geometry, in a minute and 4 GB", async () => {
		const home = await temporaryHome();
		const started = performance.now();
		const child = startCli([...args, "--home", home], { env: { TMPDIR: home } });
		child.stdin.end();
		let stdout = "";
		child.stdout.setEncoding("utf8").on("data", (text) => {
			stdout += text;
		});
		const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
		const largest = await largestTogether(home, ended);
		expect(await ended).toBe(0);
		const seconds = (performance.now() - started) / 1000;
		const { data } = JSON.parse(stdout);
		expect(data).toMatchObject({
			model: { name: "122b", weights: "synthetic", layers: 1, experts: 256, topK: 8, hidden: 3072 },
			remote: { layers: [0], asked: 104, answered: 104, fallback: 0, retried: 0 },
			tokens: { same: 8, total: 8 },
			argmax: { same: 13, total: 13 },
			logits: { identical: true },
			partials: { pairs: 104, identical: 104, worst: 0 },
			firstDivergence: null,
			served: { pairs: 104, bytes: 1_277_952, kvr: "0.008945664", nano: "8945664" },
			verdict: "identical",
		});
		expect(seconds).toBeLessThan(secondsMost);
		expect(largest).toBeGreaterThan(0);
		expect(largest).toBeLessThan(bytesMost);
	});

	it("exits 3 where a worker answers wrongly, and names the expert and the worker", async () => {
		const env = { NODE_ENV: "test", KVASIR_TEST_CORRUPT: "0:all" };
		const { code, json } = await runCli([...args, "--tokens", "1"], { env, deadlineMs: 120_000 });
		const { ok, data } = json();
		expect({ code, ok, verdict: data.verdict }).toEqual({ code: 3, ok: true, verdict: "different" });
		const { layer, expert, worker, position } = data.firstDivergence;
		expect({ layer, position }).toEqual({ layer: 0, position: 0 });
		expect(expert).toBeGreaterThanOrEqual(0);
		expect(data.remote.workers.map(({ key }: { key: string }) => key)).toContain(worker);
	});

	it("exits 8 with --require-weights", async () => {
		const { code, json } = await runCli([...args, "--require-weights", "--home", await temporaryHome()]);
		expect({ code, error: json().error?.code }).toEqual({ code: 8, error: "model_missing" });
	});
});

/** The most memory that the processes whose command lines name `home` took together, looked at every quarter of a second. */
async function largestTogether(home: string, ended: Promise<unknown>): Promise<number> {
	let over = false;
	let largest = 0;
	ended.then(() => {
		over = true;
	});
	const look = async () => {
		const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
		const sizes = await Promise.all(pids.map((pid) => residentBytes(pid, home)));
		const together = sizes.reduce((sum, bytes) => sum + bytes, 0);
		largest = Math.max(largest, together);
		await new Promise((resolve) => setTimeout(resolve, 250));
		return over;
	};
	await until(look, "the command to end", 2 * secondsMost * 1000);
	return largest;
}

async function residentBytes(pid: string, home: string): Promise<number> {
	const read = (file: string) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
	if (!(await read("cmdline")).includes(home)) return 0;
	return 1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(await read("status"))?.[1] ?? 0);
}
