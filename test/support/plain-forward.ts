import { dequantise } from "../../src/model/dequantise.ts";
import type { Model } from "../../src/model/model.ts";
import type { ExpertWeights, WeightMatrix } from "../../src/model/weight-matrix.ts";
import {
	dot,
	plainAttention,
	plainDeltaNet,
	plus,
	range,
	rms,
	sigmoid,
	silu,
	softmax,
	type Vector,
} from "./plain-mixers.ts";

// The forward pass of qwen35moe.md in plain loops and binary64, one token after another: an answer independent of the decoder.

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
	const projected = (name: string) => project(model, `blk.${layer}.${name}.weight`, rows);
	const norms = {
		q: await model.weights.floats(`blk.${layer}.attn_q_norm.weight`),
		k: await model.weights.floats(`blk.${layer}.attn_k_norm.weight`),
	};
	const inputs = { queries: await projected("attn_q"), k: await projected("attn_k"), v: await projected("attn_v") };
	return project(model, `blk.${layer}.attn_output.weight`, plainAttention(model.shape, norms, inputs));
}

async function deltaNet(model: Model, layer: number, rows: Vector[]): Promise<Vector[]> {
	const projected = (name: string) => project(model, `blk.${layer}.${name}.weight`, rows);
	const floats = (name: string) => model.weights.floats(`blk.${layer}.${name}`);
	const weights = {
		conv: await floats("ssm_conv1d.weight"),
		decay: await floats("ssm_a"),
		timeStep: await floats("ssm_dt.bias"),
		norm: await floats("ssm_norm.weight"),
	};
	const inputs = {
		qkv: await projected("attn_qkv"),
		z: await projected("attn_gate"),
		b: await projected("ssm_beta"),
		a: await projected("ssm_alpha"),
	};
	return project(model, `blk.${layer}.ssm_out.weight`, plainDeltaNet(model.shape, weights, inputs));
}

async function project(model: Model, tensor: string, rows: readonly Vector[]): Promise<Vector[]> {
	const matrix = await matrixOf(model, tensor);
	return rows.map((row) => times(matrix, row));
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

const times = (matrix: Matrix, x: ArrayLike<number>) => matrix.map((row) => dot(row, x));
const add = (a: Vector[], b: Vector[]) => a.map((row, r) => row.map((value, i) => value + b[r]![i]!));
