import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { adapterId, hasDevice } from "../../../test/support/device.ts";
import { until } from "../../../test/support/until.ts";
import { packagePath } from "../../io/built.ts";
import { systemClock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import { openModel } from "../../model/open-model.ts";
import type { ExpertBatch } from "../engine.ts";
import { expertRow } from "../reference.ts";
import { canonicalDigest } from "../self-check.ts";
import { makePlainRows, xorshift } from "../self-check-inputs.ts";
import { askAdapters } from "./ask-adapters.ts";
import { openFirstGpu } from "./open-gpu.ts";

const slowMs = 300_000;

/** Processes of gpu-process.ts that this one started. */
function devicePids(): number[] {
	return readdirSync("/proc")
		.filter((name) => /^\d+$/.test(name))
		.filter((pid) => {
			try {
				const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
				return parent === String(process.pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("gpu-process");
			} catch {
				return false;
			}
		})
		.map(Number);
}

async function openTiny() {
	const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const { hidden } = model.shape;
	const engine = await openFirstGpu(
		{ provider: "webgpu", id: adapterId },
		{
			engine: "canonical",
			hidden,
			memoryBytes: 2 ** 26,
			source: (layer, expert) => model.weights.expert(layer, expert),
			clock: systemClock,
			log: silentLog,
		},
	);
	onTestFinished(async () => {
		await engine.close();
		await model.weights.close();
	});
	return { model, engine, hidden };
}

describe.skipIf(!hasDevice)("askAdapters()", () => {
	it("lists the adapters from a process of its own", async () => {
		expect((await askAdapters(systemClock)).map(({ id }) => id)).toContain(adapterId);
	});
});

describe.skipIf(!hasDevice || process.platform !== "linux")(
	"a device in a process of its own",
	{ timeout: slowMs },
	() => {
		it("is proved, and when it is killed requests fail, then it comes back with what it held and the same bytes", async () => {
			const { model, engine, hidden } = await openTiny();
			expect(engine.engineClass).toBe("canonical-1");
			expect(Buffer.from(engine.proof!.selfCheck).toString("hex")).toBe(canonicalDigest);

			const rows = makePlainRows(2, hidden, xorshift(5));
			const expected: number[] = [];
			for (const expert of [0, 1]) {
				const weights = await model.weights.expert(1, expert);
				await engine.load(1, expert, weights);
				expected.push(...expertRow(weights, rows.slice(expert * hidden, (expert + 1) * hidden)));
			}
			const batch = (): ExpertBatch => ({
				layer: 1,
				rowCount: 2,
				rows: { dtype: "f32", values: rows.slice() },
				rowIndex: Uint16Array.of(0, 1),
				expert: Uint16Array.of(0, 1),
			});
			expect(await engine.compute(batch())).toEqual(Float32Array.from(expected));
			const { bytesHeld } = engine;
			expect(bytesHeld).toBeGreaterThan(0);

			const [pid, ...others] = devicePids();
			expect(others).toEqual([]);
			const inFlight = engine.compute(batch());
			process.kill(pid!, "SIGKILL");
			await expect(inFlight).rejects.toMatchObject({ code: "engine_failed" });
			await expect(engine.compute(batch())).rejects.toMatchObject({ code: "engine_failed" });
			await expect(engine.load(1, 2, await model.weights.expert(1, 2))).rejects.toMatchObject({
				code: "engine_failed",
			});

			const answer = () => engine.compute(batch()).catch(() => null);
			await until(async () => (await answer()) !== null, "the device to compute again", slowMs);
			expect(await answer()).toEqual(Float32Array.from(expected));
			expect(engine.bytesHeld).toBe(bytesHeld);
			expect(engine.has(1, 2)).toBe(false);
			expect(devicePids()).toHaveLength(1);

			await engine.close();
			expect(devicePids()).toEqual([]);
		});

		it("that has no room says so, and keeps what it holds", async () => {
			const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
			const warnings: string[] = [];
			const log = { ...silentLog, warn: (_: object, message: string) => void warnings.push(message) };
			const weights = await model.weights.expert(0, 0);
			const engine = await openFirstGpu(
				{ provider: "webgpu", id: adapterId },
				{
					engine: "canonical",
					hidden: model.shape.hidden,
					memoryBytes: 40 * 2 ** 20,
					source: () => Promise.reject(new Error("nothing to refill")),
					clock: systemClock,
					log,
				},
			);
			onTestFinished(() => engine.close());
			let held = 0;
			const fill = async () => {
				for (; held < 10_000; held++) await engine.load(0, held, weights);
			};
			await expect(fill()).rejects.toMatchObject({ code: "out_of_memory" });
			expect(held).toBeGreaterThan(1);
			expect(engine.has(0, held - 1)).toBe(true);
			expect(engine.bytesHeld).toBeLessThanOrEqual(40 * 2 ** 20);
			expect(warnings).toEqual(["the device has no room for more experts, it holds fewer"]);
		});
	},
);
