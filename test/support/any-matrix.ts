import { formatOf } from "../../src/model/ggml-types.ts";
import type { TensorType, WeightMatrix } from "../../src/model/weight-matrix.ts";

// Weights and rows that make trouble, for comparing kernels bit for bit.

/** Where the binary16 values of a block lie. */
export const halvesAt: Readonly<Record<TensorType, readonly number[]>> = {
	Q4_K: [0, 2],
	Q5_K: [0, 2],
	Q6_K: [208],
	Q8_0: [0],
	F16: [0],
	F32: [],
	BF16: [],
};

/** A 32-bit xorshift. */
function xorshift(seed: number): () => number {
	let state = seed | 1;
	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state >>> 0;
	};
}

/** Any bytes a file may hold, with finite scales and weights; `byte`: every byte of them but the scales. */
export function anyMatrix(
	type: TensorType,
	outputs: number,
	inputs: number,
	seed: number,
	byte?: number,
): WeightMatrix {
	const next = xorshift(seed);
	const format = formatOf(type);
	const blocks = outputs * (inputs / format.elements);
	const bytes = new Uint8Array(blocks * format.bytes).map(() => byte ?? next() >>> 13);
	const view = new DataView(bytes.buffer);
	for (let block = 0; block < blocks; block++) {
		const at = block * format.bytes;
		for (const offset of halvesAt[type]) {
			// Any sign, zero, subnormals and the largest binary16 among them.
			const pick = next() % 16;
			const scale = pick === 0 ? 0 : pick === 1 ? next() & 0x03ff : pick === 2 ? 0x7bff : 0x1000 + (next() & 0x0fff);
			view.setUint16(at + offset, scale | ((next() & 1) << 15), true);
		}
		if (type === "BF16") view.setUint16(at, (next() & 0x8000) | (next() % 0x4400), true);
		if (type === "F32") view.setFloat32(at, (next() / 2 ** 31 - 1) * 2 ** ((next() % 40) - 20), true);
	}
	return { type, outputs, inputs, bytes };
}

/** Finite values that make trouble: ties, zeros of both signs, subnormals, outliers, block maxima around 2^-64. */
export function anyRow(length: number, seed: number): Float32Array {
	const next = xorshift(seed ^ 0x5bd1e995);
	const unit = () => next() / 2 ** 31 - 1;
	const kinds = [
		() => unit(),
		() => unit() * 1e-3 * (next() % 64 === 0 ? 1e4 : 1),
		() => (next() % 2 ? 0 : -0),
		() => unit() * 2 ** -64 * 1.01,
		() => unit() * 2 ** -140,
		() => unit() * 2 ** 60,
		() => ((next() % 16383) - 8191) * 0.5,
		() => (next() & 1 ? 1 : -1) * 8191,
		() => unit() * 2 ** ((next() % 30) - 15),
		() => 2 ** -64 * (next() % 2 ? 1 : -1),
	];
	const row = new Float32Array(length);
	for (let block = 0; block < length; block += 256) {
		const kind = kinds[next() % kinds.length]!;
		for (let i = block; i < Math.min(length, block + 256); i++) row[i] = kind();
	}
	return row;
}
