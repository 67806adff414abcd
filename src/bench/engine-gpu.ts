import { openCanonicalEngine } from "../experts/canonical/canonical-engine.ts";
import type { ExpertBatch, ExpertEngine } from "../experts/engine.ts";
import { openDevice } from "../experts/gpu/adapters.ts";
import { GpuEngine } from "../experts/gpu/gpu-engine.ts";
import { makeMatrix, makePlainRows, xorshift } from "../experts/self-check-inputs.ts";
import type { Clock } from "../io/clock.ts";
import type { TensorType } from "../model/weight-matrix.ts";

export interface GpuBenchOptions {
	/** An adapter's id. */
	readonly adapter: string;
	/** @default the block-quantised types */
	readonly types?: readonly TensorType[];
	/** Rows of each expert at once. @default [1, 4, 8, 64, 512] */
	readonly rows?: readonly number[];
	/** (hidden, width) of the experts. @default the 122B's: 3072, 1024 */
	readonly shape?: readonly [hidden: number, width: number];
	/** Experts asked at once. @default 8, as a row of the 122B asks */
	readonly experts?: number;
	/** Weights that a line reads again and again, so that no cache holds them. @default 192 MiB */
	readonly streamedBytes?: number;
	/** Time spent on a line and engine, about. @default 500 */
	readonly lineMs?: number;
	readonly clock: Pick<Clock, "monotonic">;
	readonly signal?: AbortSignal;
	/** Told each line as it is measured. */
	readonly onLine?: (line: GpuLine) => void;
}

/** Whole experts on the device and on one CPU core, in one run. */
export interface GpuLine {
	readonly type: TensorType;
	readonly experts: number;
	readonly rows: number;
	readonly device: GpuFigures;
	readonly cpu: GpuFigures;
}

export interface GpuFigures {
	/** Median of the calls: rows in, vectors out, uploads and downloads included. */
	readonly ms: number;
	/** (row, expert) pairs. */
	readonly pairsPerSecond: number;
	/** Weights as the file holds them. */
	readonly gigabytesPerSecond: number;
}

export interface GpuBench {
	readonly adapter: { readonly id: string; readonly name: string; readonly software: boolean };
	readonly lines: readonly GpuLine[];
}

/** Measures experts on a graphics device, next to the WASM kernels on one core. Throws `gpu_unavailable`. */
export async function benchGpu(options: GpuBenchOptions): Promise<GpuBench> {
	const { types = ["Q4_K", "Q5_K", "Q6_K", "Q8_0"], rows: rowCounts = [1, 4, 8, 64, 512] } = options;
	const open = await openDevice(options.adapter);
	const lines: GpuLine[] = [];
	const { id, name, software } = open.facts;
	const device = new GpuEngine(open, 2 ** 30);
	const cpu = await openCanonicalEngine({ memoryBytes: 2 ** 30 });
	try {
		for (const type of types) {
			const held = [await fill(device, type, options), await fill(cpu, type, options)] as const;
			for (const rows of rowCounts) {
				options.signal?.throwIfAborted();
				const [onDevice, onCpu] = [
					await measure(device, held[0], rows, options),
					await measure(cpu, held[1], rows, options),
				];
				const line = { type, experts: options.experts ?? 8, rows, device: onDevice, cpu: onCpu };
				lines.push(line);
				options.onLine?.(line);
			}
			for (const engine of [device, cpu]) for (let e = 0; e < held[0].count; e++) await engine.unload(0, e);
		}
	} finally {
		await device.close();
		await cpu.close();
	}
	return { adapter: { id, name, software }, lines };
}

interface Held {
	readonly count: number;
	readonly bytesEach: number;
}

async function fill(engine: ExpertEngine, type: TensorType, options: GpuBenchOptions): Promise<Held> {
	const { shape: [hidden, width] = [3072, 1024], experts = 8, streamedBytes = 192 * 2 ** 20 } = options;
	const next = xorshift(122);
	const weights = {
		gate: makeMatrix(type, width, hidden, next),
		up: makeMatrix(type, width, hidden, next),
		down: makeMatrix(type, hidden, width, next),
	};
	const bytesEach = weights.gate.bytes.length + weights.up.bytes.length + weights.down.bytes.length;
	const count = experts * Math.max(1, Math.ceil(streamedBytes / (bytesEach * experts)));
	for (let expert = 0; expert < count; expert++) await engine.load(0, expert, weights);
	return { count, bytesEach };
}

async function measure(
	engine: ExpertEngine,
	{ count, bytesEach }: Held,
	rows: number,
	{ shape: [hidden] = [3072, 1024], experts = 8, lineMs = 500, clock, signal }: GpuBenchOptions,
): Promise<GpuFigures> {
	const values = makePlainRows(rows, hidden, xorshift(rows));
	const pairs = rows * experts;
	const times: number[] = [];
	const startMs = clock.monotonic();
	for (let call = 0; call < 3 || clock.monotonic() - startMs < lineMs; call++) {
		signal?.throwIfAborted();
		const first = (call * experts) % count;
		const batch: ExpertBatch = {
			layer: 0,
			rowCount: rows,
			rows: { dtype: "f32", values },
			rowIndex: Uint16Array.from({ length: pairs }, (_, pair) => Math.floor(pair / experts)),
			expert: Uint16Array.from({ length: pairs }, (_, pair) => first + (pair % experts)),
		};
		const callMs = clock.monotonic();
		await engine.compute(batch);
		times.push(clock.monotonic() - callMs);
	}
	const ms = times.slice(1).sort((a, b) => a - b)[Math.floor((times.length - 1) / 2)]!;
	return { ms, pairsPerSecond: (1000 * pairs) / ms, gigabytesPerSecond: (bytesEach * experts) / ms / 1e6 };
}
