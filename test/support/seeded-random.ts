import type { Random } from "../../src/io/random.ts";

/** Repeatable randomness from a seed (xorshift32). Never for keys. */
export function seededRandom(seed: number): Random {
	let state = seed | 0 || 0x9e3779b9;
	const next = () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state >>> 0;
	};
	return {
		bytes: (length) => Uint8Array.from({ length }, () => next() & 255),
		uniform: () => next() / 2 ** 32,
	};
}
