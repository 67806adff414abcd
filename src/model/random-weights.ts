import { f32ToF16 } from "./half.ts";
import type { Xorshift } from "./xorshift.ts";

// Random weights of a wanted standard deviation. Floats are uniform, because uniform needs no function whose
// last bit could differ between machines.

/** Uniform binary32 weights. */
export function randomFloats(random: Xorshift, count: number, mean: number, deviation: number): Float32Array {
	const width = deviation * Math.sqrt(12);
	return Float32Array.from({ length: count }, () => mean + (random.uniform() - 0.5) * width);
}

/** Words of a Q4_K block: 4 of scales, 32 of nibbles. */
const blockWords = 36;
/** Every 6-bit scale and minimum of a block. */
const scale = 32;

/**
 * Uniform Q4_K weights: all nibbles random, every scale and minimum 32, d and dmin chosen so that the mean is 0.
 * Fast: 5.3 MB in a few milliseconds.
 *
 * @param count a multiple of 256
 */
export function randomQ4K(random: Xorshift, count: number, deviation: number): Uint8Array {
	// Nibbles 0..15 have mean 7.5 and variance (16^2 - 1) / 12.
	const d = f32ToF16(deviation / (scale * Math.sqrt(255 / 12)));
	const dmin = f32ToF16((deviation / (scale * Math.sqrt(255 / 12))) * 7.5);
	// 32 = 2 << 4: the upper bits of scales 4..7 sit in the upper bits of the bytes of scales 0..3, their lower bits are 0.
	const scales = 0x01010101 * (scale | ((scale >> 4) << 6));
	const words = new Int32Array((count / 256) * blockWords);
	for (let block = 0; block < words.length; block += blockWords) {
		words[block] = d | (dmin << 16);
		words[block + 1] = scales;
		words[block + 2] = scales;
		random.fill(words, block + 4, block + blockWords);
	}
	return new Uint8Array(words.buffer);
}
