import { tensorTypes } from "../../model/weight-matrix.ts";
import { growExchange, Plan } from "./exchange.ts";
import { header, jobKinds, matrixUnit } from "./job.ts";
import { panelOutputs, tileRows } from "./layout.ts";
import type { LoadedMatrix } from "./loaded.ts";

/** A matrix of a group, and the memory it is in. */
export interface PlacedMatrix extends LoadedMatrix {
	readonly memory: number;
}

/** Weights below which a unit is not worth cutting. */
const unitWeightsMin = 65_536;

/** Describes the products of a group's matrices with rows; returns where each (rowCount, outputs) answer will be. */
export function postMatrices(
	exchange: SharedArrayBuffer,
	matrices: readonly PlacedMatrix[],
	rows: Float32Array,
	rowCount: number,
	threads: number,
): number[] {
	const inputs = matrices[0]!.inputs;
	const units = cut(matrices, rowCount, threads);
	const plan = new Plan();
	plan.words(header.words);
	const tasks = plan.words(units.length * matrixUnit.words);
	const rowsAt = plan.words(rowCount * inputs);
	const outs = matrices.map(({ outputs }) => plan.words(rowCount * outputs));
	growExchange(exchange, plan.bytes);
	const words = new Int32Array(exchange, 0, plan.bytes / 4);
	words[header.kind] = jobKinds.matrices;
	words[header.units] = units.length;
	words[header.inputs] = inputs;
	words[header.rows] = rowsAt;
	words[header.tasks] = tasks;
	for (const [i, { index, from, to, firstRow, count }] of units.entries()) {
		const { memory, type, at, outputs } = matrices[index]!;
		const unit = [memory, tensorTypes[type], at, from, to, outputs, outs[index]!, firstRow, count];
		words.set(unit, tasks / 4 + i * matrixUnit.words);
	}
	new Float32Array(exchange, rowsAt, rowCount * inputs).set(rows.subarray(0, rowCount * inputs));
	return outs;
}

/** Units of one tile of rows and some outputs: about four for each thread. */
function cut(matrices: readonly PlacedMatrix[], rowCount: number, threads: number) {
	const inputs = matrices[0]!.inputs;
	const tile = tileRows(inputs);
	const total = matrices.reduce((sum, { outputs }) => sum + outputs, 0) * Math.ceil(rowCount / tile);
	const share = threads === 1 ? total : Math.max(unitWeightsMin / inputs, total / (4 * threads));
	const step = Math.ceil(share / panelOutputs) * panelOutputs;
	const units: { index: number; from: number; to: number; firstRow: number; count: number }[] = [];
	for (let firstRow = 0; firstRow < rowCount; firstRow += tile) {
		const count = Math.min(tile, rowCount - firstRow);
		for (const [index, { outputs }] of matrices.entries()) {
			for (let from = 0; from < outputs; from += step) {
				units.push({ index, from, to: Math.min(outputs, from + step), firstRow, count });
			}
		}
	}
	return units;
}
