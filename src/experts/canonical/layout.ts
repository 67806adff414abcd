import { KvasirError } from "../../errors.ts";
import { formatOf, rowBytesOf } from "../../model/ggml-types.ts";
import { type TensorType, tensorTypes, type WeightMatrix } from "../../model/weight-matrix.ts";

/** Outputs side by side in a panel (kernel/panel.ts). */
export const panelOutputs = 8;
/** Rows that share one pass over the weights. */
const tileRowsMax = 64;
/** Longest row: a tile of a few rows of it must fit the work space. */
const inputsMax = 65_536;

/** Bytes of 256 (Q8_0: 32; floats: 4) weights of four rows, scales widened: the BLOCK constants of kernel/*.ts. */
const panelBlocks: Record<TensorType, { readonly inputs: number; readonly bytes: number }> = {
	Q4_K: { inputs: 256, bytes: 608 },
	Q5_K: { inputs: 256, bytes: 736 },
	Q6_K: { inputs: 256, bytes: 848 },
	Q8_0: { inputs: 32, bytes: 144 },
	F32: { inputs: 4, bytes: 64 },
	F16: { inputs: 4, bytes: 32 },
	BF16: { inputs: 4, bytes: 32 },
};

/** Whether rows are quantised before these weights see them. */
export const isQuantised = (type: number): boolean => type >= tensorTypes.Q8_0 && type <= tensorTypes.Q6_K;

/** Bytes a matrix takes in panels: at most 1.06 of its file bytes, and the rest of its last panel. */
export function packedBytes({ type, inputs, outputs }: WeightMatrix): number {
	const block = panelBlocks[type];
	return Math.ceil(outputs / panelOutputs) * 2 * Math.ceil(inputs / block.inputs) * block.bytes;
}

/** Throws `unsupported_shape`, `unsupported_type` or `bad_weights` (a length that is not what the shape says). */
export function checkMatrix(name: string, matrix: WeightMatrix): void {
	const { type, inputs, outputs, bytes } = matrix;
	if (!(type in panelBlocks)) {
		throw new KvasirError("unsupported_type", `Cannot compute with ${name}: type ${type} is not supported`, {
			hint: `supported: ${Object.keys(panelBlocks).join(", ")}`,
		});
	}
	const whole = Number.isInteger(inputs) && Number.isInteger(outputs) && inputs > 0 && outputs > 0;
	if (!whole || inputs > inputsMax || inputs % formatOf(type).elements !== 0) {
		throw new KvasirError("unsupported_shape", `Cannot compute with ${name}: ${outputs} x ${inputs} of ${type}`, {
			hint: `${type} rows are multiples of ${formatOf(type).elements}, at most ${inputsMax}`,
			facts: { type, inputs, outputs },
		});
	}
	if (bytes.byteLength !== outputs * rowBytesOf(type, inputs)) {
		throw new KvasirError("bad_weights", `Cannot load ${name}: ${bytes.byteLength} bytes are not ${outputs} rows`, {
			facts: { type, inputs, outputs, bytes: bytes.byteLength },
		});
	}
}

// The work space of one thread at the start of each memory.
const kibibyte = 1024;
/** One source row, or a row being combined. */
const stageBytes = 4 * inputsMax;
const rowsBytes = 768 * kibibyte;
/** Each of two buffers of outputs. */
const outputBytes = 64 * kibibyte;
const kernelBytes = 16 * kibibyte;

export const workSpace = {
	kernel: 0,
	stage: kernelBytes,
	/** Room for a second row beside the stage: the sum in combine. */
	rows: kernelBytes + stageBytes,
	rowsBytes,
	outputs: kernelBytes + stageBytes + rowsBytes,
	outputs2: kernelBytes + stageBytes + rowsBytes + outputBytes,
	outputBytes,
	bytes: kernelBytes + stageBytes + rowsBytes + 2 * outputBytes,
} as const;

/** Bytes of a quantised row: records of 640 bytes per 256 values (kernel/activation.ts). */
export const recordBytes = (inputs: number): number => Math.ceil(inputs / 256) * 640;
/** Bytes of a row for float weights, padded to four values. */
export const paddedBytes = (inputs: number): number => Math.ceil(inputs / 4) * 16;

/** Rows of `inputs` values that fit a tile, whatever the weights; a multiple of 4 where there are as many. */
export function tileRows(inputs: number): number {
	const fit = Math.floor(rowsBytes / Math.max(recordBytes(inputs), paddedBytes(inputs)));
	const rows = Math.min(tileRowsMax, fit);
	return rows >= 4 ? rows - (rows % 4) : rows;
}

/** Outputs of a tile that fit an output buffer at once; a multiple of the panel. */
export function outputsAtOnce(rows: number): number {
	const fit = Math.floor(outputBytes / (4 * rows));
	return fit - (fit % panelOutputs);
}
