import { tensorTypes, type WeightMatrix } from "../../model/weight-matrix.ts";
import type { Place } from "./arena.ts";
import { growExchange, Plan } from "./exchange.ts";
import { header, jobKinds, packUnit } from "./job.ts";
import { packedBytes, panelOutputs, workSpace } from "./layout.ts";

/** Bytes of a file that one job lays out. */
const jobBytes = 8 * 1024 * 1024;

/** Some rows of a matrix that one unit lays out. */
interface PackPart {
	readonly matrix: WeightMatrix;
	readonly place: Place;
	readonly firstRow: number;
	readonly rows: number;
}

/** Cuts matrices into parts that fit a thread's work space, and those into jobs. */
export function packJobs(matrices: readonly WeightMatrix[], places: readonly Place[]): PackPart[][] {
	const jobs: PackPart[][] = [[]];
	let bytes = 0;
	for (const [i, matrix] of matrices.entries()) {
		const rowBytes = matrix.bytes.byteLength / matrix.outputs;
		const fit = Math.floor(workSpace.rowsBytes / rowBytes);
		const step = Math.max(panelOutputs, fit - (fit % panelOutputs));
		for (let firstRow = 0; firstRow < matrix.outputs; firstRow += step) {
			const rows = Math.min(step, matrix.outputs - firstRow);
			if (bytes + rows * rowBytes > jobBytes && bytes > 0) {
				jobs.push([]);
				bytes = 0;
			}
			bytes += rows * rowBytes;
			jobs.at(-1)!.push({ matrix, place: places[i]!, firstRow, rows });
		}
	}
	return jobs;
}

/** Describes a job that lays out `parts`. */
export function postPack(exchange: SharedArrayBuffer, parts: readonly PackPart[]): void {
	const plan = new Plan();
	plan.words(header.words);
	const tasks = plan.words(parts.length * packUnit.words);
	const sources = parts.map(({ matrix, rows }) => plan.take((matrix.bytes.byteLength / matrix.outputs) * rows));
	growExchange(exchange, plan.bytes);
	const words = new Int32Array(exchange, 0, plan.bytes / 4);
	words[header.kind] = jobKinds.pack;
	words[header.units] = parts.length;
	words[header.tasks] = tasks;
	for (const [i, { matrix, place, firstRow, rows }] of parts.entries()) {
		const rowBytes = matrix.bytes.byteLength / matrix.outputs;
		const panelBytes = (packedBytes(matrix) / Math.ceil(matrix.outputs / panelOutputs)) * (firstRow / panelOutputs);
		const at = tasks / 4 + i * packUnit.words;
		words[at + packUnit.memory] = place.memory;
		words[at + packUnit.type] = tensorTypes[matrix.type];
		words[at + packUnit.source] = sources[i]!;
		words[at + packUnit.rowBytes] = rowBytes;
		words[at + packUnit.inputs] = matrix.inputs;
		words[at + packUnit.outputs] = rows;
		words[at + packUnit.to] = place.at + panelBytes;
		const source = matrix.bytes.subarray(firstRow * rowBytes, (firstRow + rows) * rowBytes);
		new Uint8Array(exchange, sources[i]!, source.byteLength).set(source);
	}
}
