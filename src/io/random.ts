import { randomFillSync } from "node:crypto";

/** Randomness, passed in, so that a test can repeat a run from its seed. */
export interface Random {
	/** `length` unpredictable bytes. */
	bytes(length: number): Uint8Array;
	/** A number in [0, 1). */
	uniform(): number;
}

/** The operating system's randomness. */
export const systemRandom: Random = {
	bytes: (length) => randomFillSync(new Uint8Array(length)),
	uniform: () => randomFillSync(new Uint32Array(1))[0]! / 2 ** 32,
};
