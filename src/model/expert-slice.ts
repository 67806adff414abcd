import { KvasirError } from "../errors.ts";
import { rowBytesOf } from "./ggml-types.ts";
import type { ExpertWeights, TensorType, WeightMatrix } from "./weight-matrix.ts";

/** What a layer's slices are cut into: widths, and the type of each of the three matrices. */
export interface SliceLayout {
	readonly hidden: number;
	readonly expertWidth: number;
	readonly types: { readonly gate: TensorType; readonly up: TensorType; readonly down: TensorType };
}

/** An expert's slice (wire.md section 5): the raw GGUF bytes of gate, up and down, one after the other. */
export function sliceOf({ gate, up, down }: ExpertWeights): Uint8Array<ArrayBuffer> {
	const slice = new Uint8Array(gate.bytes.length + up.bytes.length + down.bytes.length);
	slice.set(gate.bytes);
	slice.set(up.bytes, gate.bytes.length);
	slice.set(down.bytes, gate.bytes.length + up.bytes.length);
	return slice;
}

/** Bytes of a slice. Throws `unsupported_shape` where rows are no whole blocks. */
export function sliceBytesOf({ hidden, expertWidth, types }: SliceLayout): number {
	return (
		expertWidth * (rowBytesOf(types.gate, hidden) + rowBytesOf(types.up, hidden)) +
		hidden * rowBytesOf(types.down, expertWidth)
	);
}

/** The three matrices of a slice, uncopied. Throws `bad_weights` for a slice of another length. */
export function expertOfSlice(slice: Uint8Array, layout: SliceLayout): ExpertWeights {
	const { hidden, expertWidth, types } = layout;
	if (slice.length !== sliceBytesOf(layout)) {
		throw new KvasirError("bad_weights", `Cannot read a slice: ${slice.length} bytes are not ${sliceBytesOf(layout)}`);
	}
	let at = 0;
	const matrix = (type: TensorType, outputs: number, inputs: number): WeightMatrix => {
		const bytes = slice.subarray(at, at + outputs * rowBytesOf(type, inputs));
		at += bytes.length;
		return { type, outputs, inputs, bytes };
	};
	return {
		gate: matrix(types.gate, expertWidth, hidden),
		up: matrix(types.up, expertWidth, hidden),
		down: matrix(types.down, hidden, expertWidth),
	};
}
