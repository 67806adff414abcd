import { argmax } from "../backbone/decode/sampler.ts";

/** How two runs' logits compare, over all positions. */
export interface LogitsReport {
	/** Every byte equal. */
	readonly identical: boolean;
	readonly positions: number;
	/** Positions with the same largest logit. */
	readonly argmaxSame: number;
	readonly cosineMin: number;
	readonly cosineMean: number;
	readonly cosineMedian: number;
	/** The largest difference of a logit. */
	readonly maxAbs: number;
	/** The largest Kullback-Leibler divergence of a position's softmax, expected from actual, in nats. */
	readonly klMax: number;
}

/** Compares logits position by position; keeps one number a position. */
export class LogitsComparison {
	readonly #cosines: number[] = [];
	#argmaxSame = 0;
	#maxAbs = 0;
	#klMax = 0;
	#identical = true;

	/** Compares one position's rows (vocab); returns whether their largest logits are the same token. */
	add(expected: Float32Array, actual: Float32Array): boolean {
		this.#identical &&= sameBytes(expected, actual);
		let dot = 0;
		let expectedSquares = 0;
		let actualSquares = 0;
		for (let i = 0; i < expected.length; i++) {
			const a = expected[i]!;
			const b = actual[i]!;
			dot += a * b;
			expectedSquares += a * a;
			actualSquares += b * b;
			this.#maxAbs = Math.max(this.#maxAbs, Math.abs(a - b));
		}
		const length = Math.sqrt(expectedSquares * actualSquares);
		this.#cosines.push(length > 0 ? Math.min(1, dot / length) : Number(expectedSquares === actualSquares));
		this.#klMax = Math.max(this.#klMax, divergence(expected, actual));
		const same = argmax(expected) === argmax(actual);
		if (same) this.#argmaxSame += 1;
		return same;
	}

	report(): LogitsReport {
		const sorted = [...this.#cosines].sort((a, b) => a - b);
		const count = sorted.length;
		return {
			identical: this.#identical,
			positions: count,
			argmaxSame: this.#argmaxSame,
			cosineMin: sorted[0] ?? 1,
			cosineMean: count === 0 ? 1 : sorted.reduce((sum, cosine) => sum + cosine, 0) / count,
			cosineMedian: median(sorted),
			maxAbs: this.#maxAbs,
			klMax: this.#klMax,
		};
	}
}

/** The middle of sorted values, 1 of none. */
function median(sorted: readonly number[]): number {
	if (sorted.length === 0) return 1;
	const middle = sorted.length >> 1;
	return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** sum p (log p - log q) of the two softmaxes, never below 0. */
function divergence(expected: Float32Array, actual: Float32Array): number {
	const expectedLog = logSumExp(expected);
	const actualLog = logSumExp(actual);
	let sum = 0;
	for (let i = 0; i < expected.length; i++) {
		const logP = expected[i]! - expectedLog;
		sum += Math.exp(logP) * (logP - (actual[i]! - actualLog));
	}
	return Math.max(0, sum);
}

function logSumExp(values: Float32Array): number {
	const most = values[argmax(values)]!;
	let sum = 0;
	for (const value of values) sum += Math.exp(value - most);
	return most + Math.log(sum);
}

function sameBytes(a: Float32Array, b: Float32Array): boolean {
	const bytes = (values: Float32Array) => Buffer.from(values.buffer, values.byteOffset, values.byteLength);
	return bytes(a).equals(bytes(b));
}
