import { dequantise } from "../../src/model/dequantise.ts";
import type { Model } from "../../src/model/model.ts";
import type { ExpertWeights, WeightMatrix } from "../../src/model/weight-matrix.ts";

// The forward pass of qwen35moe.md in plain loops and binary64, one token after another: an answer independent of the decoder.

type Vector = number[];
type Matrix = readonly Float64Array[];

/** Logits (positions of vocab numbers) for all tokens of a text. */
export async function plainForward(model: Model, tokens: readonly number[]): Promise<Vector[]> {
	const { weights, shape } = model;
	const embedding = await matrixOf(model, "token_embd.weight");
	let hidden = tokens.map((token) => [...embedding[token]!]);
	for (let layer = 0; layer < shape.layers; layer++) {
		const norm = await weights.floats(`blk.${layer}.attn_norm.weight`);
		const normed = hidden.map((row) => rms(row, norm, shape.rmsEpsilon));
		const mix = shape.fullAttention[layer] ? attention : deltaNet;
		hidden = add(hidden, await mix(model, layer, normed));
		const expertNorm = await weights.floats(`blk.${layer}.post_attention_norm.weight`);
		const expertInput = hidden.map((row) => rms(row, expertNorm, shape.rmsEpsilon));
		hidden = add(hidden, await experts(model, layer, expertInput));
	}
	const outputNorm = await weights.floats("output_norm.weight");
	const head = weights.has("output.weight") ? await matrixOf(model, "output.weight") : embedding;
	return hidden.map((row) => times(head, rms(row, outputNorm, shape.rmsEpsilon)));
}

async function attention(model: Model, layer: number, rows: Vector[]): Promise<Vector[]> {
	const { heads, kvHeads, headDim, rotaryDims, ropeTheta } = model.shape.attention;
	const tensor = (name: string) => matrixOf(model, `blk.${layer}.${name}.weight`);
	const [wq, wk, wv, wo] = [
		await tensor("attn_q"),
		await tensor("attn_k"),
		await tensor("attn_v"),
		await tensor("attn_output"),
	];
	const qNorm = await model.weights.floats(`blk.${layer}.attn_q_norm.weight`);
	const kNorm = await model.weights.floats(`blk.${layer}.attn_k_norm.weight`);
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
	const keys: Vector[][] = [];
	const values: Vector[][] = [];
	return rows.map((row, position) => {
		const both = times(wq, row);
		const kFlat = times(wk, row);
		const vFlat = times(wv, row);
		const part = (flat: Vector, start: number) => flat.slice(start, start + headDim);
		keys.push(range(kvHeads, (h) => turn(rms(part(kFlat, h * headDim), kNorm, model.shape.rmsEpsilon), position)));
		values.push(range(kvHeads, (h) => part(vFlat, h * headDim)));
		const mixed = range(heads, (h) => {
			const q = turn(rms(part(both, h * 2 * headDim), qNorm, model.shape.rmsEpsilon), position);
			const gate = part(both, h * 2 * headDim + headDim);
			const kv = Math.floor(h / (heads / kvHeads));
			const scores = softmax(keys.map((key) => dot(q, key[kv]!) / Math.sqrt(headDim)));
			return range(headDim, (i) => {
				const read = scores.reduce((sum, score, t) => sum + score * values[t]![kv]![i]!, 0);
				return read * sigmoid(gate[i]!);
			});
		});
		return times(wo, mixed.flat());
	});
}

async function deltaNet(model: Model, layer: number, rows: Vector[]): Promise<Vector[]> {
	const { keyHeads, valueHeads, headDim: d, convKernel } = model.shape.deltaNet;
	const tensor = (name: string) => matrixOf(model, `blk.${layer}.${name}.weight`);
	const [wqkv, wz] = [await tensor("attn_qkv"), await tensor("attn_gate")];
	const [wb, wa, wo] = [await tensor("ssm_beta"), await tensor("ssm_alpha"), await tensor("ssm_out")];
	const conv = await model.weights.floats(`blk.${layer}.ssm_conv1d.weight`);
	const decay = await model.weights.floats(`blk.${layer}.ssm_a`);
	const step = await model.weights.floats(`blk.${layer}.ssm_dt.bias`);
	const norm = await model.weights.floats(`blk.${layer}.ssm_norm.weight`);
	const mixed = rows.map((row) => times(wqkv, row));
	const states = range(valueHeads, () => range(d, () => range(d, () => 0)));
	return rows.map((row, t) => {
		const y = mixed[0]!.map((_, c) => {
			let sum = 0;
			for (let j = 0; j < convKernel; j++)
				sum += conv[c * convKernel + j]! * (mixed[t - (convKernel - 1) + j]?.[c] ?? 0);
			return silu(sum);
		});
		const [z, b, a] = [times(wz, row), times(wb, row), times(wa, row)];
		const heads = range(valueHeads, (h) => {
			const kh = h % keyHeads;
			const q = unit(y.slice(kh * d, (kh + 1) * d)).map((value) => value / Math.sqrt(d));
			const k = unit(y.slice((keyHeads + kh) * d, (keyHeads + kh + 1) * d));
			const v = y.slice((2 * keyHeads + h) * d, (2 * keyHeads + h + 1) * d);
			const beta = sigmoid(b[h]!);
			const keep = Math.exp(decay[h]! * softplus(a[h]! + step[h]!));
			const state = states[h]!;
			for (const stateRow of state) for (let j = 0; j < d; j++) stateRow[j]! *= keep;
			const known = readState(state, k);
			const change = v.map((value, j) => beta * (value - known[j]!));
			for (let i = 0; i < d; i++) for (let j = 0; j < d; j++) state[i]![j]! += k[i]! * change[j]!;
			const read = readState(state, q);
			return rms(read, norm, model.shape.rmsEpsilon).map((value, i) => value * silu(z[h * d + i]!));
		});
		return times(wo, heads.flat());
	});
}

/** S^T x */
function readState(state: readonly (readonly number[])[], x: readonly number[]): Vector {
	const read = range(x.length, () => 0);
	for (const [i, row] of state.entries()) for (let j = 0; j < row.length; j++) read[j]! += row[j]! * x[i]!;
	return read;
}

async function experts(model: Model, layer: number, rows: Vector[]): Promise<Vector[]> {
	const { topK } = model.shape;
	const router = await matrixOf(model, `blk.${layer}.ffn_gate_inp.weight`);
	const sharedGate = await model.weights.floats(`blk.${layer}.ffn_gate_inp_shexp.weight`);
	const shared = plainExpert(await model.weights.sharedExpert(layer));
	const loaded: PlainExpert[] = [];
	const out: Vector[] = [];
	for (const row of rows) {
		const shares = softmax(times(router, row));
		const chosen = [...shares.keys()].sort((a, b) => shares[b]! - shares[a]! || a - b).slice(0, topK);
		const total = chosen.map((expert) => shares[expert]!).reduce(plus, 0);
		const sum = swiglu(shared, row).map((value) => value * sigmoid(dot(sharedGate, row)));
		for (const expert of chosen) {
			loaded[expert] ??= plainExpert(await model.weights.expert(layer, expert));
			const vector = swiglu(loaded[expert], row);
			for (const [i, value] of vector.entries()) sum[i]! += (shares[expert]! / total) * value;
		}
		out.push(sum);
	}
	return out;
}

interface PlainExpert {
	readonly gate: Matrix;
	readonly up: Matrix;
	readonly down: Matrix;
}

export function plainExpert({ gate, up, down }: ExpertWeights): PlainExpert {
	return { gate: plain(gate), up: plain(up), down: plain(down) };
}

/** `Wdown (silu(Wgate x) * (Wup x))` in binary64. */
export function swiglu({ gate, up, down }: PlainExpert, row: ArrayLike<number>): Vector {
	const u = times(up, row);
	return times(
		down,
		times(gate, row).map((g, i) => silu(g) * u[i]!),
	);
}

async function matrixOf(model: Model, tensor: string): Promise<Matrix> {
	return plain(await model.weights.matrix(tensor));
}

function plain({ bytes, type, outputs, inputs }: WeightMatrix): Matrix {
	const values = dequantise(bytes, type);
	return range(outputs, (o) => Float64Array.from(values.subarray(o * inputs, (o + 1) * inputs)));
}

const plus = (a: number, b: number) => a + b;
const range = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i));
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
const silu = (x: number) => x * sigmoid(x);
const softplus = (x: number) => (x > 20 ? x : Math.log1p(Math.exp(x)));

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
	let sum = 0;
	for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
	return sum;
}
const times = (matrix: Matrix, x: ArrayLike<number>) => matrix.map((row) => dot(row, x));
const unit = (x: Vector) => x.map((value) => value / Math.max(Math.sqrt(dot(x, x)), 1e-6));
const add = (a: Vector[], b: Vector[]) => a.map((row, r) => row.map((value, i) => value + b[r]![i]!));

function rms(x: Vector, weight: Float32Array, epsilon: number): Vector {
	const scale = 1 / Math.sqrt(dot(x, x) / x.length + epsilon);
	return x.map((value, i) => value * scale * weight[i]!);
}

function softmax(x: Vector): Vector {
	const most = Math.max(...x);
	const terms = x.map((value) => Math.exp(value - most));
	const total = terms.reduce(plus, 0);
	return terms.map((term) => term / total);
}
