import { readdir, readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { adapterId, hasDevice } from "../support/device.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { backboneHome, doneOf, testSwarm } from "../support/test-swarm.ts";
import { until } from "../support/until.ts";

const slowMs = 300_000;
const nanoPerPair = 256n * 4n * 7n;

it.skipIf(!hasDevice)(
	"a device process killed in the middle of a decode costs no token, is back by itself, and nothing is paid twice",
	{ timeout: slowMs },
	async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home, { workers: [{ hold: ["3:all"], args: [`--gpu=webgpu:${adapterId}`] }] });
		const [worker] = swarm.workers;
		const dispatch = (...args: string[]) =>
			swarm.startBackbone(backboneHome(home), ["--prompt", "The capital of France is", "--tokens", "24", ...args]);
		const alone = await doneOf(await dispatch("--remote", "none"));

		const backbone = await dispatch("--remote", "3", "--wait", "120");
		await backbone.events.waitFor(({ event, index }) => event === "token" && Number(index) >= 3, slowMs);
		process.kill(await deviceProcessOf(worker!.pid), "SIGKILL");
		const first = await doneOf(backbone, slowMs);
		expect(first.answers).toEqual(alone.answers);
		expect(first.remote.fallback).toBeGreaterThan(0);
		expect(first.remote.failures).toHaveProperty("engine_failed");

		let answered = first.remote.answered;
		const served = async () => {
			const again = await doneOf(await dispatch("--remote", "3", "--wait", "120"), slowMs);
			expect(again.answers).toEqual(alone.answers);
			answered += again.remote.answered;
			return again.remote.fallback === 0;
		};
		await until(served, "the device to serve again", slowMs);

		const { payout } = worker!.listening as unknown as { payout: string };
		const paid = async () => {
			const { json } = await runCli([
				"wallet",
				"balance",
				payout,
				"--gateway",
				swarm.gatewayUrl,
				"--home",
				home,
				"--json",
			]);
			return BigInt(json().data.nano.pending);
		};
		await until(async () => (await paid()) >= BigInt(answered) * nanoPerPair, "the work to be credited");
		expect(await paid()).toBe(BigInt(answered) * nanoPerPair);
	},
);

/** The pid of the process that owns the graphics device of a worker. */
async function deviceProcessOf(parent: number): Promise<number> {
	for (const name of (await readdir("/proc")).filter((each) => /^\d+$/.test(each))) {
		const read = (file: string) => readFile(`/proc/${name}/${file}`, "utf8").catch(() => "");
		const isChild = new RegExp(`^PPid:\\s*${parent}$`, "m").test(await read("status"));
		if (isChild && (await read("cmdline")).includes("gpu-process")) return Number(name);
	}
	throw new Error(`No device process under ${parent}`);
}
