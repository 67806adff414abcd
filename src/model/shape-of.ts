import { KvasirError } from "../errors.ts";
import type { TensorInfo } from "./gguf-header.ts";
import { architecture, integerOf, type Metadata, positiveOf, textOf, unexpected } from "./metadata.ts";
import type { ModelShape } from "./shape.ts";

/** The largest dimensions Kvasir accepts: expert ids are 16 bits on the wire, the rest keeps arithmetic far from 2^31. */
const most = {
	layers: 1_024,
	width: 65_536,
	heads: 1_024,
	experts: 65_535,
	vocab: 2 ** 24,
	context: 2 ** 31 - 1,
	kernel: 64,
};

/**
 * The dimensions of a qwen35moe model from its metadata and tensor list (spec: qwen35moe.md section 1).
 * Throws `unsupported_architecture` for other models, `unsupported_shape` naming the key that does not fit.
 */
export function shapeOf(metadata: Metadata, tensors: ReadonlyMap<string, TensorInfo>): ModelShape {
	checkArchitecture(metadata);
	const integer = (key: string, least: number, limit: number) =>
		integerOf(metadata, `${architecture}.${key}`, least, limit);
	const blocks = integer("block_count", 1, most.layers);
	const layers = blocks - optionalInteger(metadata, "nextn_predict_layers", 0, blocks - 1, 0);
	const shape: ModelShape = {
		layers,
		hidden: integer("embedding_length", 1, most.width),
		vocab: vocabOf(metadata, tensors),
		contextLength: integer("context_length", 1, most.context),
		fullAttention: fullAttentionOf(metadata, layers),
		attention: attentionOf(metadata, layers),
		deltaNet: deltaNetOf(metadata),
		experts: integer("expert_count", 1, most.experts),
		topK: integer("expert_used_count", 1, most.experts),
		expertWidth: integer("expert_feed_forward_length", 1, most.width),
		sharedWidth: integer("expert_shared_feed_forward_length", 1, most.width),
		rmsEpsilon: positiveOf(metadata, `${architecture}.attention.layer_norm_rms_epsilon`),
	};
	if (shape.topK > shape.experts) {
		throw unexpected(`${architecture}.expert_used_count`, `at most ${shape.experts} (expert_count)`, shape.topK);
	}
	return shape;
}

function checkArchitecture(metadata: Metadata): void {
	const found = textOf(metadata, "general.architecture");
	if (found === architecture) return;
	throw new KvasirError(
		"unsupported_architecture",
		`Cannot use the model: its architecture is "${found ?? "not stated"}"`,
		{
			hint: `Kvasir runs ${architecture} (Qwen3.5 mixture-of-experts) models`,
			facts: { architecture: found },
		},
	);
}

function optionalInteger(metadata: Metadata, key: string, least: number, limit: number, fallback: number): number {
	const full = `${architecture}.${key}`;
	return metadata.has(full) ? integerOf(metadata, full, least, limit) : fallback;
}

/** Rows of the embedding: at least as many as there are tokens, more where the vocabulary is padded. */
function vocabOf(metadata: Metadata, tensors: ReadonlyMap<string, TensorInfo>): number {
	const tokens = metadata.get("tokenizer.ggml.tokens");
	const rows = tensors.get("token_embd.weight")?.ne[1] ?? (Array.isArray(tokens) ? tokens.length : 0);
	if (rows < 1 || rows > most.vocab) throw unexpected("token_embd.weight", `1 to ${most.vocab} rows`, rows);
	if (Array.isArray(tokens) && tokens.length > rows) {
		throw unexpected("tokenizer.ggml.tokens", `at most ${rows} tokens (rows of token_embd.weight)`, tokens);
	}
	return rows;
}

/** `attention.recurrent_layers` where a file has it, else every interval-th layer of the main stack. */
function fullAttentionOf(metadata: Metadata, layers: number): boolean[] {
	const key = `${architecture}.attention.recurrent_layers`;
	const recurrent = metadata.get(key);
	if (recurrent === undefined) {
		const interval = optionalInteger(metadata, "full_attention_interval", 1, most.layers, 4);
		return Array.from({ length: layers }, (_, layer) => (layer + 1) % interval === 0);
	}
	const valid =
		Array.isArray(recurrent) && recurrent.length >= layers && recurrent.every((value) => typeof value === "boolean");
	if (!valid) throw unexpected(key, `an array of ${layers} booleans`, recurrent);
	return recurrent.slice(0, layers).map((isRecurrent) => !isRecurrent);
}

function attentionOf(metadata: Metadata, layers: number): ModelShape["attention"] {
	const heads = headsOf(metadata, "attention.head_count", layers);
	const kvHeads = headsOf(metadata, "attention.head_count_kv", layers);
	const headDim = integerOf(metadata, `${architecture}.attention.key_length`, 1, most.width);
	const rotaryDims = optionalInteger(metadata, "rope.dimension_count", 2, most.width, headDim);
	const valueDim = optionalInteger(metadata, "attention.value_length", 1, most.width, headDim);
	if (heads % kvHeads !== 0)
		throw unexpected(`${architecture}.attention.head_count`, `a multiple of ${kvHeads} (head_count_kv)`, heads);
	if (valueDim !== headDim)
		throw unexpected(`${architecture}.attention.value_length`, `${headDim} (key_length)`, valueDim);
	if (rotaryDims % 2 !== 0 || rotaryDims > headDim) {
		throw unexpected(`${architecture}.rope.dimension_count`, `even and at most ${headDim} (key_length)`, rotaryDims);
	}
	const scaling = textOf(metadata, `${architecture}.rope.scaling.type`) ?? "none";
	if (scaling !== "none") throw unexpected(`${architecture}.rope.scaling.type`, "none", scaling);
	return { heads, kvHeads, headDim, rotaryDims, ropeTheta: positiveOf(metadata, `${architecture}.rope.freq_base`) };
}

/** A number of heads; hybrid models may list it per layer, with 0 where a layer has no attention. */
function headsOf(metadata: Metadata, key: string, layers: number): number {
	const full = `${architecture}.${key}`;
	const value = metadata.get(full);
	if (!Array.isArray(value)) return integerOf(metadata, full, 1, most.heads);
	const [count, ...others] = new Set<unknown>(value.slice(0, layers).filter((heads) => heads !== 0));
	if (others.length > 0) throw unexpected(full, "the same in all attention layers", value);
	return integerOf(new Map([[full, count]]), full, 1, most.heads);
}

function deltaNetOf(metadata: Metadata): ModelShape["deltaNet"] {
	const integer = (key: string, limit: number) => integerOf(metadata, `${architecture}.ssm.${key}`, 1, limit);
	const keyHeads = integer("group_count", most.heads);
	const valueHeads = integer("time_step_rank", most.heads);
	const headDim = integer("state_size", most.width);
	const inner = integer("inner_size", most.heads * most.width);
	if (valueHeads % keyHeads !== 0) {
		throw unexpected(`${architecture}.ssm.time_step_rank`, `a multiple of ${keyHeads} (group_count)`, valueHeads);
	}
	if (inner !== valueHeads * headDim) {
		throw unexpected(`${architecture}.ssm.inner_size`, `${valueHeads * headDim} (time_step_rank x state_size)`, inner);
	}
	return { keyHeads, valueHeads, headDim, convKernel: integer("conv_kernel", most.kernel) };
}
