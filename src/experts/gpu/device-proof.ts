import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import { openCanonicalEngine } from "../canonical/canonical-engine.ts";
import type { DeviceProof, ExpertBatch, ExpertEngine } from "../engine.ts";
import { canonicalDigest, selfCheck } from "../self-check.ts";
import { makeMatrix, makePlainRows, xorshift } from "../self-check-inputs.ts";
import type { Adapter } from "./adapters.ts";
import type { GpuEngine } from "./gpu-engine.ts";

/** The timed expert: a quarter of the 122B's width, so that a slow device is not asked for long. */
const timed = { hidden: 3072, width: 256, rows: 16 } as const;
const runs = 3;
/** A layer no model has. */
const layer = 0xffff;

/**
 * Runs the known-answer test on a device and times one expert there and on one CPU core.
 * Throws `gpu_unavailable` where the bytes differ: the driver or the device computes wrongly.
 */
export async function proveDevice(engine: GpuEngine, { id, name }: Adapter, clock: Clock): Promise<DeviceProof> {
	const startMs = clock.monotonic();
	const digest = await selfCheck(engine);
	const selfCheckMs = clock.monotonic() - startMs;
	if (digest !== canonicalDigest) {
		throw new KvasirError("gpu_unavailable", `Cannot use ${name}: its self-check gives other bytes (${digest})`, {
			hint: "Update its driver, and report the driver's version",
		});
	}
	const cpu = await openCanonicalEngine({ memoryBytes: 16 * 2 ** 20 });
	try {
		const [deviceMs, cpuMs] = [await timeExpert(engine, clock), await timeExpert(cpu, clock)];
		const selfCheckBytes = new Uint8Array(Buffer.from(digest, "hex"));
		return { id: `webgpu:${id}`, name, selfCheck: selfCheckBytes, selfCheckMs, deviceMs, cpuMs, rows: timed.rows };
	} finally {
		await cpu.close();
	}
}

/** The least of a few runs, in milliseconds. */
async function timeExpert(engine: Pick<ExpertEngine, "load" | "unload" | "compute">, clock: Clock): Promise<number> {
	const { hidden, width, rows } = timed;
	const next = xorshift(16);
	const [gate, up] = [makeMatrix("Q4_K", width, hidden, next), makeMatrix("Q4_K", width, hidden, next)];
	await engine.load(layer, 0, { gate, up, down: makeMatrix("Q4_K", hidden, width, next) });
	const values = makePlainRows(rows, hidden, next);
	let leastMs = Number.POSITIVE_INFINITY;
	for (let run = 0; run < runs; run++) {
		const batch: ExpertBatch = {
			layer,
			rowCount: rows,
			rows: { dtype: "f32", values: values.slice() },
			rowIndex: Uint16Array.from({ length: rows }, (_, row) => row),
			expert: new Uint16Array(rows),
		};
		const startMs = clock.monotonic();
		await engine.compute(batch);
		leastMs = Math.min(leastMs, clock.monotonic() - startMs);
	}
	await engine.unload(layer, 0);
	return leastMs;
}
