import type { WeightMatrix } from "../../model/weight-matrix.ts";
import { blockShaders } from "./wgsl-blocks.ts";
import { isBlockType } from "./wgsl-dot.ts";

/** Words of 32 bits that a matrix takes on the device. */
export function deviceWords({ type, outputs, inputs, bytes }: WeightMatrix): number {
	if (!isBlockType(type)) return Math.ceil(bytes.length / 4);
	const { words, span } = blockShaders[type];
	return (outputs * inputs * words) / span;
}

/** Copies a matrix into `target` (device words as bytes): the file's blocks, each padded to whole words; Q8_0's scale gets a word of its own. */
export function packWeights({ type, bytes }: WeightMatrix, target: Uint8Array): void {
	if (!isBlockType(type) || blockShaders[type].fileBytes === blockShaders[type].words * 4) {
		target.set(bytes);
		return;
	}
	const { fileBytes, words, span } = blockShaders[type];
	const head = span === 32 ? 2 : 0;
	for (let from = 0, to = 0; from < bytes.length; from += fileBytes, to += words * 4) {
		if (head > 0) target.set(bytes.subarray(from, from + head), to);
		target.set(bytes.subarray(from + head, from + fileBytes), to + head * 2);
	}
}
