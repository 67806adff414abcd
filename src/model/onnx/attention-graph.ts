import type { ModelShape } from "../shape.ts";
import { encodeModel, type OnnxModel } from "./onnx-model.ts";

/**
 * The inside of a gated attention layer (qwen35moe.md section 4) after norms and rotation: `q` and `gate` (1, tokens, Hq x D),
 * the sequence's whole cache `k` and `v` (1, length, Hkv x D) -> `y` (1, tokens, Hq x D) = attention * sigmoid(gate).
 * `masked`: with `mask` (tokens, length), true where a token may look; without it every token sees the whole cache (one token).
 */
export function attentionGraph(shape: ModelShape, masked: boolean): OnnxModel {
	const { heads, kvHeads, headDim } = shape.attention;
	const queryWidth = heads * headDim;
	const cacheWidth = kvHeads * headDim;
	return encodeModel({
		nodes: [
			{
				op: "Attention",
				inputs: masked ? ["q", "k", "v", "mask"] : ["q", "k", "v"],
				outputs: ["read"],
				attributes: { q_num_heads: { int: heads }, kv_num_heads: { int: kvHeads } },
			},
			{ op: "Sigmoid", inputs: ["gate"], outputs: ["open"] },
			{ op: "Mul", inputs: ["read", "open"], outputs: ["y"] },
		],
		inputs: [
			{ name: "q", type: "float", dims: [1, "tokens", queryWidth] },
			{ name: "gate", type: "float", dims: [1, "tokens", queryWidth] },
			{ name: "k", type: "float", dims: [1, "length", cacheWidth] },
			{ name: "v", type: "float", dims: [1, "length", cacheWidth] },
			...(masked ? [{ name: "mask", type: "bool", dims: ["tokens", "length"] } as const] : []),
		],
		outputs: [{ name: "y", type: "float", dims: [1, "tokens", queryWidth] }],
		constants: [],
	});
}
