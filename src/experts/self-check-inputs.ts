import { formatOf } from "../model/ggml-types.ts";
import type { TensorType, WeightMatrix } from "../model/weight-matrix.ts";

// Inputs of the self-check and of the property tests, from a 32-bit xorshift written here: no file, the same everywhere.

/** Marsaglia's xorshift (13, 17, 5): unsigned 32-bit words. */
export function xorshift(seed: number): () => number {
	let state = seed | 1;
	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state >>> 0;
	};
}

/** Where the binary16 values of a block lie. */
export const halvesAt: Record<TensorType, readonly number[]> = {
	Q4_K: [0, 2],
	Q5_K: [0, 2],
	Q6_K: [208],
	Q8_0: [0],
	F16: [0],
	F32: [],
	BF16: [],
};

/** Small positive binary16 bits: about 2^-11 to 2^-8. */
export const smallScale = (next: () => number): number => 0x1000 + (next() & 0x0fff);

/** Binary16 bits of either sign, zero, subnormals and the largest among them. */
export function anyScale(next: () => number): number {
	const kind = next() % 16;
	const size = kind === 0 ? 0 : kind === 1 ? next() & 0x03ff : kind === 2 ? 0x7bff : smallScale(next);
	return size | ((next() & 1) << 15);
}

/** A matrix of random bits, scales apart: those come from `scale`. With `byte`, all its bytes but the scales are that. */
export function makeMatrix(
	type: TensorType,
	outputs: number,
	inputs: number,
	next: () => number,
	scale: (next: () => number) => number = smallScale,
	byte?: number,
): WeightMatrix {
	const format = formatOf(type);
	const blocks = outputs * (inputs / format.elements);
	const words = new Uint32Array(Math.ceil((blocks * format.bytes) / 4));
	for (let i = 0; i < words.length; i++) words[i] = byte === undefined ? next() : byte * 0x01010101;
	const bytes = new Uint8Array(words.buffer, 0, blocks * format.bytes);
	const view = new DataView(bytes.buffer);
	for (let block = 0; block < blocks; block++) {
		const at = block * format.bytes;
		for (const offset of halvesAt[type]) view.setUint16(at + offset, scale(next), true);
		if (type === "BF16") view.setUint16(at, (next() & 0x8000) | (next() % 0x4400), true);
		if (type === "F32") view.setFloat32(at, signed(next) * 2 ** ((next() % 40) - 20), true);
	}
	return { type, outputs, inputs, bytes };
}

/** -1 to 1 in steps of 2^-31: exact in binary64, rounded once where it is stored. */
const signed = (next: () => number): number => next() / 2 ** 31 - 1;
const sign = (next: () => number): number => (next() & 1 ? 1 : -1);

/** What a block of a row may hold: ordinary values, outliers, zeros of both signs, block maxima around 2^-64, subnormals, huge values, ties, the bounds. */
const blockKinds: readonly ((next: () => number) => number)[] = [
	signed,
	(next) => signed(next) * 1e-3 * (next() % 64 === 0 ? 1e4 : 1),
	(next) => 0 * sign(next),
	(next) => signed(next) * 2 ** -64 * 1.01,
	(next) => signed(next) * 2 ** -140,
	(next) => signed(next) * 2 ** 60,
	(next) => ((next() % 16383) - 8191) * 0.5,
	(next) => 8191 * sign(next),
	(next) => signed(next) * 2 ** ((next() % 30) - 15),
	(next) => 2 ** -64 * sign(next),
];

/** A finite row, every block of 256 of another kind. */
export function makeRow(length: number, next: () => number): Float32Array {
	const row = new Float32Array(length);
	for (let block = 0; block < length; block += 256) {
		const value = blockKinds[next() % blockKinds.length]!;
		const end = Math.min(length, block + 256);
		for (let i = block; i < end; i++) row[i] = value(next);
	}
	return row;
}

/** Rows as a network has them: ordinary values of one size. */
export function makePlainRows(rows: number, length: number, next: () => number): Float32Array {
	return new Float32Array(rows * length).map(() => signed(next));
}
