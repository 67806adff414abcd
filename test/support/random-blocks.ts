import { formatOf, rowBytesOf } from "../../src/model/ggml-types.ts";
import { f32ToF16 } from "../../src/model/half.ts";
import { randomFloats } from "../../src/model/random-weights.ts";
import type { TensorType } from "../../src/model/weight-matrix.ts";
import type { Xorshift } from "../../src/model/xorshift.ts";

/** Root mean square of a random 6-bit number. */
const scaleRms = Math.sqrt((63 * 127) / 6);

/** `count` random weights of a type as GGUF blocks: of a mean (0 where quantised) and about the wanted standard deviation, scales of the K-quants random too. */
export function randomBlocks(
	random: Xorshift,
	type: TensorType,
	count: number,
	{ mean, deviation }: { mean: number; deviation: number },
): Uint8Array {
	switch (type) {
		case "F32":
			return new Uint8Array(randomFloats(random, count, mean, deviation).buffer);
		case "F16":
			return new Uint8Array(Uint16Array.from(randomFloats(random, count, mean, deviation), f32ToF16).buffer);
		case "BF16": {
			const bits = new Uint32Array(randomFloats(random, count, mean, deviation).buffer);
			return new Uint8Array(Uint16Array.from(bits, (word) => word >>> 16).buffer);
		}
		default:
			return quantised(random, type, count, deviation);
	}
}

function quantised(random: Xorshift, type: TensorType, count: number, deviation: number): Uint8Array {
	const byteLength = rowBytesOf(type, count);
	const words = new Int32Array(Math.ceil(byteLength / 4));
	random.fill(words, 0, words.length);
	const bytes = new Uint8Array(words.buffer, 0, byteLength);
	const view = new DataView(bytes.buffer);
	const f16 = (at: number, value: number) => view.setUint16(at, f32ToF16(value), true);
	const blockBytes = formatOf(type).bytes;
	for (let at = 0; at < bytes.length; at += blockBytes) {
		// A block's own factor, so that blocks differ in scale.
		const size = deviation * (0.5 + random.uniform());
		if (type === "Q8_0") f16(at, size / 74);
		else if (type === "Q6_K") f16(at + 208, size / (74 * 18.5));
		else {
			const step = size / (scaleRms * (type === "Q4_K" ? 4.61 : 9.23));
			f16(at, step);
			f16(at + 2, step * (type === "Q4_K" ? 7.5 : 15.5));
			balance(bytes, at + 4);
		}
	}
	return bytes;
}

/** Makes the 8 minima of a Q4_K or Q5_K block equal to its 8 scales, so that weights have mean 0. */
function balance(bytes: Uint8Array, at: number): void {
	bytes.copyWithin(at + 4, at, at + 4);
	for (let i = at + 8; i < at + 12; i++) bytes[i] = (bytes[i]! & 15) * 17;
}
