import { KvasirError } from "../errors.ts";
import { tensorTypeOf, typeNameOf } from "./ggml-types.ts";
import type { TensorInfo } from "./gguf-header.ts";
import type { ModelShape } from "./shape.ts";

/** A tensor that a model of some shape has, by ggml's `ne` (the contiguous dimension first). */
export interface PlannedTensor {
	readonly name: string;
	readonly ne: readonly number[];
}

/** The tensors outside the layers; `output.weight` may be absent (then the embedding is the head too). */
export function globalTensors({ hidden, vocab }: ModelShape): PlannedTensor[] {
	return [
		{ name: "token_embd.weight", ne: [hidden, vocab] },
		{ name: "output_norm.weight", ne: [hidden] },
		{ name: "output.weight", ne: [hidden, vocab] },
	];
}

/** The tensors of one layer, routed experts in three tensors (spec: qwen35moe.md section 6). */
export function layerTensors(shape: ModelShape, layer: number): PlannedTensor[] {
	const { hidden, experts, expertWidth, sharedWidth } = shape;
	const mixer = shape.fullAttention[layer] ? attentionTensors(shape) : deltaNetTensors(shape);
	const tensors: [string, number[]][] = [
		["attn_norm.weight", [hidden]],
		["post_attention_norm.weight", [hidden]],
		...mixer,
		["ffn_gate_inp.weight", [hidden, experts]],
		["ffn_gate_exps.weight", [hidden, expertWidth, experts]],
		["ffn_up_exps.weight", [hidden, expertWidth, experts]],
		["ffn_down_exps.weight", [expertWidth, hidden, experts]],
		["ffn_gate_inp_shexp.weight", [hidden]],
		["ffn_gate_shexp.weight", [hidden, sharedWidth]],
		["ffn_up_shexp.weight", [hidden, sharedWidth]],
		["ffn_down_shexp.weight", [sharedWidth, hidden]],
	];
	return tensors.map(([name, ne]) => ({ name: `blk.${layer}.${name}`, ne }));
}

function attentionTensors({ hidden, attention }: ModelShape): [string, number[]][] {
	const { heads, kvHeads, headDim } = attention;
	return [
		["attn_q.weight", [hidden, 2 * heads * headDim]],
		["attn_k.weight", [hidden, kvHeads * headDim]],
		["attn_v.weight", [hidden, kvHeads * headDim]],
		["attn_output.weight", [heads * headDim, hidden]],
		["attn_q_norm.weight", [headDim]],
		["attn_k_norm.weight", [headDim]],
	];
}

function deltaNetTensors({ hidden, deltaNet }: ModelShape): [string, number[]][] {
	const { keyHeads, valueHeads, headDim, convKernel } = deltaNet;
	const channels = (2 * keyHeads + valueHeads) * headDim;
	return [
		["attn_qkv.weight", [hidden, channels]],
		["attn_gate.weight", [hidden, valueHeads * headDim]],
		["ssm_beta.weight", [hidden, valueHeads]],
		["ssm_alpha.weight", [hidden, valueHeads]],
		["ssm_a", [valueHeads]],
		["ssm_dt.bias", [valueHeads]],
		["ssm_conv1d.weight", [convKernel, channels]],
		["ssm_norm.weight", [headDim]],
		["ssm_out.weight", [valueHeads * headDim, hidden]],
	];
}

/** The fused tensor some converters write instead of gate and up: per expert all gate rows, then all up rows. */
export function fusedGateUp({ hidden, expertWidth, experts }: ModelShape, layer: number): PlannedTensor {
	return { name: `blk.${layer}.ffn_gate_up_exps.weight`, ne: [hidden, 2 * expertWidth, experts] };
}

/** Checks that every tensor the model runs with is there, of its shape and of a supported type. Throws `bad_gguf`, `unsupported_shape` or `unsupported_type` naming the tensor. */
export function checkTensors(shape: ModelShape, tensors: ReadonlyMap<string, TensorInfo>): void {
	for (const planned of globalTensors(shape)) {
		if (planned.name === "output.weight" && !tensors.has(planned.name)) continue;
		checkTensor(planned, tensors);
	}
	for (let layer = 0; layer < shape.layers; layer++) {
		const fused = fusedGateUp(shape, layer);
		const isFused = tensors.has(fused.name);
		if (isFused) checkTensor(fused, tensors);
		for (const planned of layerTensors(shape, layer)) {
			if (isFused && /ffn_(gate|up)_exps/.test(planned.name)) continue;
			checkTensor(planned, tensors);
		}
	}
}

function checkTensor({ name, ne }: PlannedTensor, tensors: ReadonlyMap<string, TensorInfo>): void {
	const tensor = tensors.get(name);
	if (tensor === undefined) {
		throw new KvasirError("bad_gguf", `Cannot use the model: tensor ${name} is missing`, { facts: { tensor: name } });
	}
	const type = typeNameOf(tensor.ggmlType);
	if (tensorTypeOf(tensor.ggmlType) === undefined) {
		throw new KvasirError("unsupported_type", `Cannot use the model: tensor ${name} is of type ${type}`, {
			hint: "use a file with F32, F16, BF16, Q8_0, Q4_K, Q5_K and Q6_K tensors, such as Q4_K_M or UD-Q4_K_XL",
			facts: { tensor: name, type },
		});
	}
	if (!sameShape(tensor.ne, ne)) {
		const state = `tensor ${name} is ${tensor.ne.join(" x ")}, not ${ne.join(" x ")}`;
		throw new KvasirError("unsupported_shape", `Cannot use the model: ${state}`, { facts: { tensor: name } });
	}
}

/** Equal but for trailing dimensions of 1. */
function sameShape(found: readonly number[], wanted: readonly number[]): boolean {
	const rank = Math.max(found.length, wanted.length);
	for (let i = 0; i < rank; i++) if ((found[i] ?? 1) !== (wanted[i] ?? 1)) return false;
	return true;
}

/** Refuses a layer or an expert the model does not have: a bug of the caller, who has checked what came from outside. */
export function checkExpert(shape: ModelShape, layer: number, expert: number): void {
	const inside = layer >= 0 && layer < shape.layers && expert >= 0 && expert < shape.experts;
	if (!inside) throw new KvasirError("internal", `Cannot read expert ${expert} of layer ${layer}: the model has none`);
}
