import type { TensorType } from "../../model/weight-matrix.ts";
import type { Chunk, DeviceSlice } from "./arena.ts";
import { rowsPerJob } from "./wgsl-dot.ts";

/** A matrix on the device. */
export interface DeviceMatrix {
	readonly type: TensorType;
	readonly outputs: number;
	readonly inputs: number;
	readonly slice: DeviceSlice;
}

/** A row to multiply: which one, by which matrix, and to which row its product goes. */
export interface Product {
	readonly matrix: DeviceMatrix;
	readonly from: number;
	readonly to: number;
}

/** One dispatch: all jobs whose matrices have one type and shape and lie in one buffer. */
export interface Pass {
	readonly type: TensorType;
	readonly outputs: number;
	readonly inputs: number;
	readonly chunk: Chunk;
	/** Word of the first job in the table. */
	readonly jobs: number;
	readonly jobCount: number;
}

/**
 * Lays products out as the tables that the shader reads (wgsl-dot.ts): rows of one matrix in jobs of up to eight.
 * The order of jobs does not matter to any result.
 *
 * @param table gets slots and jobs appended
 */
export function planPasses(products: readonly Product[], table: number[]): Pass[] {
	const byMatrix = groupBy(products, ({ matrix }) => matrix);
	const byBuffer = groupBy(byMatrix.keys(), ({ slice }) => slice.chunk);
	return [...byBuffer].flatMap(([chunk, matrices]) =>
		[...groupBy(matrices, ({ type }) => type)].map(([type, sameType]) => {
			const jobs = sameType.flatMap((matrix) => slotTables(matrix, byMatrix.get(matrix)!, table));
			const first = table.length;
			table.push(...jobs);
			const { outputs, inputs } = sameType[0]!;
			return { type, outputs, inputs, chunk, jobs: first, jobCount: jobs.length / 3 };
		}),
	);
}

/** Writes the slots of one matrix and returns its jobs (3 words each). */
function slotTables(matrix: DeviceMatrix, products: readonly Product[], table: number[]): number[] {
	const jobs: number[] = [];
	for (let at = 0; at < products.length; at += rowsPerJob) {
		const slots = products.slice(at, at + rowsPerJob);
		jobs.push(matrix.slice.word, table.length, slots.length);
		for (const { from, to } of slots) table.push(from, to);
	}
	return jobs;
}

/** Map.groupBy, which Node 20 lacks. */
function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
	const groups = new Map<K, T[]>();
	for (const item of items) {
		const key = keyOf(item);
		const group = groups.get(key);
		if (group) group.push(item);
		else groups.set(key, [item]);
	}
	return groups;
}
