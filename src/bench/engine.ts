import { openCanonicalEngine } from "../experts/canonical/canonical-engine.ts";
import { openF32Matrices } from "../experts/f32/f32-matrices.ts";
import type { MatrixGroup } from "../experts/matrices.ts";
import { type InferenceSession, openSession, tensorConstructor } from "../experts/onnxruntime.ts";
import { makeMatrix, makePlainRows, xorshift } from "../experts/self-check-inputs.ts";
import type { Clock } from "../io/clock.ts";
import type { TensorType, WeightMatrix } from "../model/weight-matrix.ts";
import { type NBitsOptions, nBitsGraph } from "./matmul-nbits.ts";

/** The engines of the table. */
export const benchedEngines = ["canonical", "canonical, 2 threads", "onnx fp32", "onnx int8"] as const;
export type BenchedEngine = (typeof benchedEngines)[number];

export interface EngineBenchOptions {
	/** @default all block-quantised types and F32 */
	readonly types?: readonly TensorType[];
	/** Rows at once. @default [1, 4, 8, 64, 512] */
	readonly rows?: readonly number[];
	/** (outputs, inputs). @default the 122B's expert matrices: 1024 x 3072 and 3072 x 1024 */
	readonly shapes?: readonly (readonly [outputs: number, inputs: number])[];
	/** Time spent on a line, about. @default 250 */
	readonly lineMs?: number;
	readonly clock: Pick<Clock, "monotonic">;
	readonly signal?: AbortSignal;
	/** Told each line as it is measured. */
	readonly onLine?: (line: EngineLine) => void;
}

/** One product of a matrix with some rows: all engines in turn, so that whatever else the machine does befalls all alike. */
export interface EngineLine {
	readonly type: TensorType;
	readonly outputs: number;
	readonly inputs: number;
	readonly rows: number;
	/** Float weights have no int8 form. */
	readonly engines: Readonly<Partial<Record<BenchedEngine, EngineFigures>>>;
}

export interface EngineFigures {
	/** Median of the calls. */
	readonly ms: number;
	/** Weights as the file holds them, read from memory. */
	readonly gigabytesPerSecond: number;
	readonly gigaflops: number;
	/** Speed relative to onnxruntime at fp32 accuracy on the same line. */
	readonly ratio: number;
}

export interface EngineBench {
	readonly lines: readonly EngineLine[];
}

/** One engine with as many copies of a matrix as no cache holds. */
interface Contestant {
	readonly engine: BenchedEngine;
	readonly copies: number;
	/** Multiplies copy number `copy` with rows. */
	multiply(copy: number, x: Float32Array, rows: number): Promise<unknown>;
	close(): Promise<void>;
}

/** Larger than the last cache of most machines. */
const streamedBytes = 96 * 1024 ** 2;
const seed = 122;

/** Measures matrix products as experts need them: weights streamed from memory, by type, shape and number of rows. */
export async function benchEngine(options: EngineBenchOptions): Promise<EngineBench> {
	const { types = ["Q4_K", "Q5_K", "Q6_K", "Q8_0", "F32"], rows: rowCounts = [1, 4, 8, 64, 512], signal } = options;
	const shapes = options.shapes ?? [
		[1024, 3072],
		[3072, 1024],
	];
	const lines: EngineLine[] = [];
	for (const type of types) {
		for (const [outputs, inputs] of shapes) {
			signal?.throwIfAborted();
			const matrix = makeMatrix(type, outputs, inputs, xorshift(seed));
			const contestants = await openContestants(matrix);
			try {
				for (const rows of rowCounts) {
					signal?.throwIfAborted();
					const line = await measureLine(matrix, rows, contestants, options);
					lines.push(line);
					options.onLine?.(line);
				}
			} finally {
				await Promise.all(contestants.map((contestant) => contestant.close()));
			}
		}
	}
	return { lines };
}

async function measureLine(
	matrix: WeightMatrix,
	rows: number,
	contestants: readonly Contestant[],
	{ clock, lineMs = 250, signal }: EngineBenchOptions,
): Promise<EngineLine> {
	const { type, outputs, inputs, bytes } = matrix;
	const x = makePlainRows(rows, inputs, xorshift(seed));
	const times = contestants.map(() => [] as number[]);
	const startMs = clock.monotonic();
	for (let call = 0; call < 5 || clock.monotonic() - startMs < lineMs; call++) {
		signal?.throwIfAborted();
		for (const [i, contestant] of contestants.entries()) {
			const callMs = clock.monotonic();
			await contestant.multiply(call % contestant.copies, x, rows);
			times[i]!.push(clock.monotonic() - callMs);
		}
	}
	const medians = times.map((values) => values.slice(1).sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!);
	const baselineMs = medians[benchedEngines.indexOf("onnx fp32")]!;
	const figures = medians.map((ms, i): [BenchedEngine, EngineFigures] => [
		contestants[i]!.engine,
		{
			ms,
			gigabytesPerSecond: bytes.byteLength / ms / 1e6,
			gigaflops: (2 * outputs * inputs * rows) / ms / 1e6,
			ratio: baselineMs / ms,
		},
	]);
	return { type, outputs, inputs, rows, engines: Object.fromEntries(figures) };
}

async function openContestants(matrix: WeightMatrix): Promise<Contestant[]> {
	const quantised = matrix.type.startsWith("Q");
	const exact =
		matrix.type === "Q4_K" ? openNBits(matrix, "onnx fp32", exactForm(matrix, 0)) : openF32(matrix, "onnx fp32");
	return [
		await openCanonical(matrix, "canonical", 1),
		await openCanonical(matrix, "canonical, 2 threads", 2),
		await exact,
		...(quantised ? [await openNBits(matrix, "onnx int8", exactForm(matrix, 4))] : []),
	];
}

async function openCanonical(matrix: WeightMatrix, engine: BenchedEngine, threads: number): Promise<Contestant> {
	const copies = copiesOf(matrix.bytes.byteLength);
	const canonical = await openCanonicalEngine({
		memoryBytes: 1.1 * copies * matrix.bytes.byteLength + 1024 ** 2,
		threads,
	});
	const groups: MatrixGroup[] = [];
	for (let copy = 0; copy < copies; copy++) groups.push(await canonical.group("bench", [matrix]));
	return {
		engine,
		copies,
		multiply: (copy, x, rows) => groups[copy]!.multiply(x, rows),
		close: () => canonical.close(),
	};
}

/** The form of MatMulNBits that holds a type's weights exactly (Q5_K: in 8 bits). */
function exactForm({ type, outputs, inputs }: WeightMatrix, accuracyLevel: 0 | 4): NBitsOptions {
	const blockSize = type === "Q6_K" ? 16 : 32;
	return {
		outputs,
		inputs,
		bits: type === "Q4_K" ? 4 : 8,
		blockSize,
		accuracyLevel,
		mins: type === "Q4_K" || type === "Q5_K",
	};
}

async function openNBits(matrix: WeightMatrix, engine: BenchedEngine, form: NBitsOptions): Promise<Contestant> {
	const copies = copiesOf(matrix.bytes.byteLength);
	const Tensor = await tensorConstructor();
	const model = nBitsGraph(form);
	const sessions: InferenceSession[] = [];
	for (let copy = 0; copy < copies; copy++) sessions.push(await openSession(model));
	return {
		engine,
		copies,
		multiply: (copy, x, rows) => sessions[copy]!.run({ x: new Tensor("float32", x, [rows, matrix.inputs]) }),
		close: async () => void (await Promise.all(sessions.map((session) => session.release()))),
	};
}

/** 8-bit MatMulNBits has no float kernel: the fast exact form is the widened matrix. */
async function openF32(matrix: WeightMatrix, engine: BenchedEngine): Promise<Contestant> {
	const copies = copiesOf(4 * matrix.outputs * matrix.inputs);
	const matrices = await openF32Matrices();
	const groups = await Promise.all(Array.from({ length: copies }, () => matrices.group("bench", [matrix])));
	return {
		engine,
		copies,
		multiply: (copy, x, rows) => groups[copy]!.multiply(x, rows),
		close: async () => void (await Promise.all(groups.map((group) => group.close()))),
	};
}

const copiesOf = (bytes: number): number => Math.min(64, Math.max(2, Math.ceil(streamedBytes / bytes)));
