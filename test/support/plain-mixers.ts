import type { ModelShape } from "../../src/model/shape.ts";

// The mixers of qwen35moe.md sections 3 and 4 between their projections, in plain loops and binary64, one token after another.

export type Vector = number[];

export interface DeltaNetWeights {
	/** (C, K) */
	readonly conv: ArrayLike<number>;
	readonly decay: ArrayLike<number>;
	readonly timeStep: ArrayLike<number>;
	readonly norm: ArrayLike<number>;
}

/** One text's rows of q | k | v, z, b and a -> its mixed rows. */
export function plainDeltaNet(
	{ deltaNet, rmsEpsilon }: ModelShape,
	{ conv, decay, timeStep, norm }: DeltaNetWeights,
	{ qkv, z, b, a }: Readonly<Record<"qkv" | "z" | "b" | "a", readonly Vector[]>>,
): Vector[] {
	const { keyHeads, valueHeads, headDim: d, convKernel } = deltaNet;
	const states = range(valueHeads, () => range(d, () => range(d, () => 0)));
	return qkv.map((row, t) => {
		const y = row.map((_, c) => {
			let sum = 0;
			for (let j = 0; j < convKernel; j++) sum += conv[c * convKernel + j]! * (qkv[t - (convKernel - 1) + j]?.[c] ?? 0);
			return silu(sum);
		});
		const heads = range(valueHeads, (h) => {
			const kh = h % keyHeads;
			const q = unit(y.slice(kh * d, (kh + 1) * d)).map((value) => value / Math.sqrt(d));
			const k = unit(y.slice((keyHeads + kh) * d, (keyHeads + kh + 1) * d));
			const v = y.slice((2 * keyHeads + h) * d, (2 * keyHeads + h + 1) * d);
			const beta = sigmoid(b[t]![h]!);
			const keep = Math.exp(decay[h]! * softplus(a[t]![h]! + timeStep[h]!));
			const state = states[h]!;
			for (const stateRow of state) for (let j = 0; j < d; j++) stateRow[j]! *= keep;
			const known = readState(state, k);
			const change = v.map((value, j) => beta * (value - known[j]!));
			for (let i = 0; i < d; i++) for (let j = 0; j < d; j++) state[i]![j]! += k[i]! * change[j]!;
			return rms(readState(state, q), norm, rmsEpsilon).map((value, i) => value * silu(z[t]![h * d + i]!));
		});
		return heads.flat();
	});
}

/** S^T x */
function readState(state: readonly (readonly number[])[], x: readonly number[]): Vector {
	const read = range(x.length, () => 0);
	for (const [i, row] of state.entries()) for (let j = 0; j < row.length; j++) read[j]! += row[j]! * x[i]!;
	return read;
}

export interface AttentionNorms {
	readonly q: ArrayLike<number>;
	readonly k: ArrayLike<number>;
}

/** One text's rows of q | gate (head by head), k and v -> its mixed rows. */
export function plainAttention(
	{ attention, rmsEpsilon }: ModelShape,
	norms: AttentionNorms,
	{ queries, k, v }: Readonly<Record<"queries" | "k" | "v", readonly Vector[]>>,
): Vector[] {
	const { heads, kvHeads, headDim, rotaryDims, ropeTheta } = attention;
	const turn = (head: Vector, position: number) => {
		const out = [...head];
		for (let i = 0; i < rotaryDims / 2; i++) {
			const angle = position * ropeTheta ** ((-2 * i) / rotaryDims);
			const [low, high] = [head[i]!, head[i + rotaryDims / 2]!];
			out[i] = low * Math.cos(angle) - high * Math.sin(angle);
			out[i + rotaryDims / 2] = high * Math.cos(angle) + low * Math.sin(angle);
		}
		return out;
	};
	const part = (flat: Vector, start: number) => flat.slice(start, start + headDim);
	const keys: Vector[][] = [];
	return queries.map((both, position) => {
		keys.push(range(kvHeads, (h) => turn(rms(part(k[position]!, h * headDim), norms.k, rmsEpsilon), position)));
		const mixed = range(heads, (h) => {
			const q = turn(rms(part(both, h * 2 * headDim), norms.q, rmsEpsilon), position);
			const kv = Math.floor(h / (heads / kvHeads));
			const scores = softmax(keys.map((key) => dot(q, key[kv]!) / Math.sqrt(headDim)));
			return range(headDim, (i) => {
				const read = scores.reduce((sum, score, t) => sum + score * v[t]![kv * headDim + i]!, 0);
				return read * sigmoid(both[h * 2 * headDim + headDim + i]!);
			});
		});
		return mixed.flat();
	});
}

export const plus = (a: number, b: number) => a + b;
export const range = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i));
export const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
export const silu = (x: number) => x * sigmoid(x);
const softplus = (x: number) => (x > 20 ? x : Math.log1p(Math.exp(x)));

export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
	let sum = 0;
	for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
	return sum;
}
const unit = (x: Vector) => x.map((value) => value / Math.max(Math.sqrt(dot(x, x)), 1e-6));

export function rms(x: Vector, weight: ArrayLike<number>, epsilon: number): Vector {
	const scale = 1 / Math.sqrt(dot(x, x) / x.length + epsilon);
	return x.map((value, i) => value * scale * weight[i]!);
}

export function softmax(x: Vector): Vector {
	const most = Math.max(...x);
	const terms = x.map((value) => Math.exp(value - most));
	const total = terms.reduce(plus, 0);
	return terms.map((term) => term / total);
}
