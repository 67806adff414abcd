import { KvasirError } from "../../errors.ts";
import { exp64 } from "../../experts/exp64.ts";
import { selectLargest } from "./router.ts";

/** How a token is chosen from logits. */
export interface Sampling {
	/** 0: always the largest logit, ties to the lowest id. */
	readonly temperature: number;
	/** Only the k largest logits; 0: all. @default 0 */
	readonly topK?: number;
	/** Only the most likely tokens whose probabilities reach this sum. @default 1 */
	readonly topP?: number;
	/** The same seed gives the same tokens. @default 0 */
	readonly seed?: number;
}

/** Greedy decoding. */
export const greedy: Sampling = { temperature: 0 };

/** Tokens less likely than e^-40 of the best one are never drawn: their whole mass is below 1e-11 for any vocabulary. */
const leastExponent = -40;

/** Checks sampling options that came from outside. Throws `usage`. */
export function checkSampling({ temperature, topK = 0, topP = 1, seed = 0 }: Sampling): void {
	const wrong =
		(!(temperature >= 0 && temperature <= 100) && `temperature ${temperature} is not in 0..100`) ||
		(!(Number.isInteger(topK) && topK >= 0) && `top-k ${topK} is not a whole number`) ||
		(!(topP > 0 && topP <= 1) && `top-p ${topP} is not above 0 and at most 1`) ||
		(!Number.isSafeInteger(seed) && `seed ${seed} is not a whole number below 2^53`);
	if (wrong) throw new KvasirError("usage", `Cannot sample: ${wrong}`);
}

/**
 * Chooses the token number `index` of a text from its logits (vocab): top-k, softmax at the temperature, top-p, draw.
 * Depends on nothing but its arguments: the draw is a number made of the seed and `index`.
 */
export function sample(logits: Float32Array, sampling: Sampling, index: number): number {
	if (sampling.temperature === 0 || sampling.topK === 1) return argmax(logits);
	const candidates = candidatesOf(logits, sampling);
	const best = logits[candidates[0]!]!;
	const masses = new Float64Array(candidates.length);
	let total = 0;
	for (const [rank, token] of candidates.entries()) {
		masses[rank] = exp64((logits[token]! - best) / sampling.temperature);
		total += masses[rank]!;
	}
	const kept = nucleus(masses, total, sampling.topP ?? 1);
	let rest = uniform(sampling.seed ?? 0, index) * kept.mass;
	for (let rank = 0; rank < kept.count; rank++) {
		rest -= masses[rank]!;
		if (rest < 0) return candidates[rank]!;
	}
	return candidates[kept.count - 1]!;
}

/** The id of the largest value, the lowest of equals. */
export function argmax(values: Float32Array): number {
	let best = 0;
	for (let id = 1; id < values.length; id++) if (values[id]! > values[best]!) best = id;
	return best;
}

/** Token ids that may be drawn, most likely first, ties to the lower id. */
function candidatesOf(logits: Float32Array, { temperature, topK = 0 }: Sampling): Uint32Array {
	if (topK > 0) {
		const chosen = new Uint32Array(Math.min(topK, logits.length));
		selectLargest(logits, chosen);
		return chosen;
	}
	const least = logits[argmax(logits)]! + leastExponent * temperature;
	const likely: number[] = [];
	for (let id = 0; id < logits.length; id++) if (logits[id]! >= least) likely.push(id);
	return Uint32Array.from(likely.sort((a, b) => logits[b]! - logits[a]! || a - b));
}

/** The smallest number of first candidates whose share reaches `topP`, at least one. */
function nucleus(masses: Float64Array, total: number, topP: number): { count: number; mass: number } {
	if (topP >= 1) return { count: masses.length, mass: total };
	let mass = 0;
	for (const [rank, more] of masses.entries()) {
		mass += more;
		if (mass >= topP * total) return { count: rank + 1, mass };
	}
	return { count: masses.length, mass: total };
}

const mask64 = (1n << 64n) - 1n;

/** A number in [0, 1) made of two whole numbers: splitmix64 (Steele, Lea, Flood 2014) at step `index + 1` from `seed`; its upper 53 bits. */
export function uniform(seed: number, index: number): number {
	let z = (BigInt.asUintN(64, BigInt(seed)) + BigInt(index + 1) * 0x9e3779b97f4a7c15n) & mask64;
	z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask64;
	z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask64;
	z ^= z >> 31n;
	return Number(z >> 11n) / 2 ** 53;
}
