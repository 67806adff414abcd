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
/** Device memory that a proof takes at most. */
export const proofBytes = 64 * 2 ** 20;
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
		const { ms: deviceMs } = await timeExpert(engine, clock);
		const { ms: cpuMs } = await timeExpert(cpu, clock);
		const selfCheckBytes = new Uint8Array(Buffer.from(digest, "hex"));
		return { id: `webgpu:${id}`, name, selfCheck: selfCheckBytes, selfCheckMs, deviceMs, cpuMs, rows: timed.rows };
	} finally {
		await cpu.close();
	}
}

/** numerics.md section 1: `||y - r|| <= 0.04 ||r|| + 1e-6`, the worst row counts. */
const tolerance = { relative: 0.04, absolute: 1e-6 } as const;

/**
 * Compares one expert of an onnxruntime provider with canonical-1 and times both. Throws `gpu_unavailable` with the provider's own
 * words where it cannot be opened, or where it is outside its class's tolerance.
 */
export async function proveProvider(
	openEngine: (hidden: number) => Promise<ExpertEngine>,
	{ id, name, provider }: { readonly id: string; readonly name: string; readonly provider: string },
	clock: Clock,
): Promise<DeviceProof> {
	const startMs = clock.monotonic();
	const engine = await openEngine(timed.hidden);
	const cpu = await openCanonicalEngine({ memoryBytes: 16 * 2 ** 20 });
	try {
		const device = await timeExpert(engine, clock);
		const own = await timeExpert(cpu, clock);
		const worst = worstExcess(device.vectors, own.vectors);
		if (worst > 0) throw new Error(`its results are outside the tolerance of its class`);
		const selfCheckMs = clock.monotonic() - startMs;
		const { ms: deviceMs } = device;
		return { id, name, selfCheck: new Uint8Array(0), selfCheckMs, deviceMs, cpuMs: own.ms, rows: timed.rows };
	} catch (cause) {
		const hint =
			provider === "cuda" ? "Get its libraries with: kvasir gpu install-cuda" : "Without --gpu the CPU computes";
		throw new KvasirError("gpu_unavailable", `Cannot use ${provider}: ${(cause as Error).message}`, { hint, cause });
	} finally {
		await engine.close();
		await cpu.close();
	}
}

/** How far the worst row is beyond the tolerance; 0 or less: within it. */
function worstExcess(vectors: Float32Array, reference: Float32Array): number {
	const { hidden, rows } = timed;
	let worst = Number.NEGATIVE_INFINITY;
	for (let row = 0; row < rows; row++) {
		let [difference, size] = [0, 0];
		for (let i = row * hidden; i < (row + 1) * hidden; i++) {
			difference += (vectors[i]! - reference[i]!) ** 2;
			size += reference[i]! ** 2;
		}
		worst = Math.max(worst, Math.sqrt(difference) - tolerance.relative * Math.sqrt(size) - tolerance.absolute);
	}
	return worst;
}

/** The least time of a few runs, and what they gave. */
async function timeExpert(
	engine: Pick<ExpertEngine, "load" | "unload" | "compute">,
	clock: Clock,
): Promise<{ readonly ms: number; readonly vectors: Float32Array }> {
	const { hidden, width, rows } = timed;
	const next = xorshift(16);
	const [gate, up] = [makeMatrix("Q4_K", width, hidden, next), makeMatrix("Q4_K", width, hidden, next)];
	await engine.load(layer, 0, { gate, up, down: makeMatrix("Q4_K", hidden, width, next) });
	const values = makePlainRows(rows, hidden, next);
	let [ms, vectors] = [Number.POSITIVE_INFINITY, new Float32Array(0)];
	for (let run = 0; run < runs; run++) {
		const batch: ExpertBatch = {
			layer,
			rowCount: rows,
			rows: { dtype: "f32", values: values.slice() },
			rowIndex: Uint16Array.from({ length: rows }, (_, row) => row),
			expert: new Uint16Array(rows),
		};
		const startMs = clock.monotonic();
		vectors = new Float32Array(await engine.compute(batch));
		ms = Math.min(ms, clock.monotonic() - startMs);
	}
	await engine.unload(layer, 0);
	return { ms, vectors };
}
