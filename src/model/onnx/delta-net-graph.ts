import type { ModelShape } from "../shape.ts";
import { encodeModel, int64Constant, type OnnxModel, type OnnxNode } from "./onnx-model.ts";

/** Keeps a near-zero q or k finite: the square of llama.cpp's bound on the length, far below any real one. */
const lengthEpsilon = 1e-12;

/**
 * The inside of a gated delta net layer, between its projections (qwen35moe.md section 3), for `tokens` rows of one sequence:
 * `qkv` (1, tokens, C), `z` (tokens x Nv, d), `b` and `a` (1, tokens, Nv), the layer's small weights, and the sequence's
 * `rows` (1, C, K-1) and `state` (1, Nv, d, d) -> `y` (tokens x Nv, d), `newRows`, `newState`.
 * Weights are inputs, so one session serves all layers.
 */
export function deltaNetGraph(shape: ModelShape): OnnxModel {
	const { keyHeads, valueHeads, headDim, convKernel } = shape.deltaNet;
	const channels = (2 * keyHeads + valueHeads) * headDim;
	return encodeModel({
		nodes: [
			...convolution,
			...normaliseKeys(headDim),
			...tileHeads(valueHeads / keyHeads),
			...gates,
			...recurrence(shape),
		],
		inputs: [
			{ name: "qkv", type: "float", dims: [1, "tokens", channels] },
			{ name: "z", type: "float", dims: ["heads", headDim] },
			{ name: "b", type: "float", dims: [1, "tokens", valueHeads] },
			{ name: "a", type: "float", dims: [1, "tokens", valueHeads] },
			{ name: "conv", type: "float", dims: [channels, 1, convKernel] },
			{ name: "decay", type: "float", dims: [valueHeads] },
			{ name: "timeStep", type: "float", dims: [valueHeads] },
			{ name: "norm", type: "float", dims: [headDim] },
			{ name: "rows", type: "float", dims: [1, channels, convKernel - 1] },
			{ name: "state", type: "float", dims: [1, valueHeads, headDim, headDim] },
		],
		outputs: [
			{ name: "y", type: "float", dims: ["heads", headDim] },
			{ name: "newRows", type: "float", dims: [1, channels, convKernel - 1] },
			{ name: "newState", type: "float", dims: [1, valueHeads, headDim, headDim] },
		],
		constants: [
			int64Constant("splitConv", [2 * keyHeads * headDim, valueHeads * headDim]),
			int64Constant("keyShape", [1, -1, 2 * keyHeads, headDim]),
			int64Constant("splitKeys", [keyHeads, keyHeads]),
			int64Constant("flatShape", [1, -1, valueHeads * headDim]),
			int64Constant("headShape", [-1, headDim]),
			{
				name: "unitScale",
				type: "float",
				dims: [headDim],
				data: new Float32Array(headDim).fill(1 / Math.sqrt(headDim)),
			},
		],
	});
}

/** Causal depthwise convolution and silu over q, k and v together; `rows` are the K-1 rows of `qkv` before these. */
const convolution: readonly OnnxNode[] = [
	{ op: "Transpose", inputs: ["qkv"], outputs: ["channels"], attributes: { perm: { ints: [0, 2, 1] } } },
	{
		op: "CausalConvWithState",
		domain: "com.microsoft",
		inputs: ["channels", "conv", "", "rows"],
		outputs: ["convolved", "newRows"],
		attributes: { activation: { string: "silu" }, ndim: { int: 1 } },
	},
	{ op: "Transpose", inputs: ["convolved"], outputs: ["mixed"], attributes: { perm: { ints: [0, 2, 1] } } },
	{ op: "Split", inputs: ["mixed", "splitConv"], outputs: ["qk", "v"], attributes: { axis: { int: 2 } } },
];

/** q and k at length 1, per head: x / sqrt(sum(x^2) + lengthEpsilon), written as an RMS norm times 1 / sqrt(d). */
function normaliseKeys(headDim: number): readonly OnnxNode[] {
	return [
		{ op: "Reshape", inputs: ["qk", "keyShape"], outputs: ["qkHeads"] },
		{
			op: "SimplifiedLayerNormalization",
			inputs: ["qkHeads", "unitScale"],
			outputs: ["unit"],
			attributes: { axis: { int: -1 }, epsilon: { float: lengthEpsilon / headDim } },
		},
		{ op: "Split", inputs: ["unit", "splitKeys"], outputs: ["qUnit", "kUnit"], attributes: { axis: { int: 2 } } },
	];
}

/** One q and k per value head, in GGUF's tiled order: value head h reads key head h mod Nk. */
function tileHeads(repeat: number): readonly OnnxNode[] {
	return ["q", "k"].flatMap((name) => [
		{
			op: "Concat",
			inputs: Array<string>(repeat).fill(`${name}Unit`),
			outputs: [`${name}Tiled`],
			attributes: { axis: { int: 2 } },
		},
		{ op: "Reshape", inputs: [`${name}Tiled`, "flatShape"], outputs: [name] },
	]);
}

/** Log decay g = ssm_a * softplus(a + ssm_dt), and beta = sigmoid(b). */
const gates: readonly OnnxNode[] = [
	{
		op: "LinearAttentionGate",
		domain: "com.microsoft",
		inputs: ["a", "timeStep", "decay", "b"],
		outputs: ["logDecay", "beta"],
	},
];

/** The delta rule over the state, then the inner norm, gated by silu(z). */
function recurrence(shape: ModelShape): readonly OnnxNode[] {
	const { valueHeads, headDim } = shape.deltaNet;
	return [
		{
			op: "LinearAttention",
			domain: "com.microsoft",
			inputs: ["q", "k", "v", "state", "logDecay", "beta"],
			outputs: ["read", "newState"],
			attributes: {
				q_num_heads: { int: valueHeads },
				kv_num_heads: { int: valueHeads },
				update_rule: { string: "gated_delta" },
				scale: { float: 1 / Math.sqrt(headDim) },
			},
		},
		{ op: "Reshape", inputs: ["read", "headShape"], outputs: ["readHeads"] },
		{
			op: "GatedRMSNorm",
			domain: "com.microsoft",
			inputs: ["readHeads", "norm", "z"],
			outputs: ["y"],
			attributes: { epsilon: { float: shape.rmsEpsilon } },
		},
	];
}
