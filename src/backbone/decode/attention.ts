import type { MatrixEngine, MatrixGroup } from "../../experts/matrices.ts";
import { type InferenceSession, type MakeTensor, openSession, tensorConstructor } from "../../experts/onnxruntime.ts";
import type { Model } from "../../model/model.ts";
import { attentionGraph } from "../../model/onnx/attention-graph.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { Mixer, MixerSpan } from "./mixer.ts";
import { rotate } from "./rotation.ts";
import { rootMeanSquareScale } from "./rows.ts";
import { type AttentionCache, growCache } from "./sequence.ts";

/** The graphs of all attention layers: one token against the cache, and several under a causal mask. */
export interface AttentionGraphs {
	readonly single: InferenceSession;
	readonly masked: InferenceSession;
	readonly Tensor: MakeTensor;
	readonly shape: ModelShape;
}

export async function openAttentionGraphs(shape: ModelShape): Promise<AttentionGraphs> {
	return {
		single: await openSession(attentionGraph(shape, false)),
		masked: await openSession(attentionGraph(shape, true)),
		Tensor: await tensorConstructor(),
		shape,
	};
}

/** Loads the gated attention of one layer (qwen35moe.md section 4). */
export async function loadAttention(
	model: Model,
	layer: number,
	matrices: MatrixEngine,
	graphs: AttentionGraphs,
): Promise<Mixer> {
	const { weights } = model;
	const name = (tensor: string) => `blk.${layer}.${tensor}.weight`;
	const projections = ["attn_q", "attn_k", "attn_v"];
	return new Attention(
		graphs,
		layer,
		{ q: await weights.floats(name("attn_q_norm")), k: await weights.floats(name("attn_k_norm")) },
		await matrices.group(
			name("mixer_in"),
			await Promise.all(projections.map((tensor) => weights.matrix(name(tensor)))),
		),
		await matrices.group(name("mixer_out"), [await weights.matrix(name("attn_output"))]),
	);
}

class Attention implements Mixer {
	readonly input: MatrixGroup;
	readonly output: MatrixGroup;
	readonly width: number;
	readonly #graphs: AttentionGraphs;
	readonly #layer: number;
	readonly #norms: { readonly q: Float32Array; readonly k: Float32Array };

	constructor(
		graphs: AttentionGraphs,
		layer: number,
		norms: { readonly q: Float32Array; readonly k: Float32Array },
		input: MatrixGroup,
		output: MatrixGroup,
	) {
		this.#graphs = graphs;
		this.#layer = layer;
		this.#norms = norms;
		this.input = input;
		this.output = output;
		this.width = graphs.shape.attention.heads * graphs.shape.attention.headDim;
	}

	async mix(projected: readonly Float32Array[], span: MixerSpan): Promise<Float32Array> {
		const { single, masked, Tensor, shape } = this.#graphs;
		const { sequence, tokens } = span;
		const cacheWidth = shape.attention.kvHeads * shape.attention.headDim;
		const cache = sequence.layers[this.#layer] as AttentionCache;
		growCache(cache, sequence.length, tokens, cacheWidth, shape.contextLength);
		this.#remember(cache, projected[1]!, projected[2]!, span);
		const { q, gate } = this.#queries(projected[0]!, span);
		const length = sequence.length + tokens;
		const cached = (values: Float32Array) =>
			new Tensor("float32", values.subarray(0, length * cacheWidth), [1, length, cacheWidth]);
		const feeds = {
			q: new Tensor("float32", q, [1, tokens, this.width]),
			gate: new Tensor("float32", gate, [1, tokens, this.width]),
			k: cached(cache.k),
			v: cached(cache.v),
		};
		const results =
			tokens === 1
				? await single.run(feeds)
				: await masked.run({ ...feeds, mask: new Tensor("bool", causalMask(tokens, length), [tokens, length]) });
		return results.y!.data as Float32Array;
	}

	async close(): Promise<void> {
		await this.input.close();
		await this.output.close();
	}

	/** Appends the span's keys (normed, rotated) and values to the cache. */
	#remember(cache: AttentionCache, keys: Float32Array, values: Float32Array, span: MixerSpan): void {
		const { kvHeads, headDim } = this.#graphs.shape.attention;
		const width = kvHeads * headDim;
		const first = span.firstRow * width;
		const start = span.sequence.length * width;
		cache.v.set(values.subarray(first, first + span.tokens * width), start);
		for (let token = 0; token < span.tokens; token++) {
			for (let head = 0; head < kvHeads; head++) {
				const offset = token * width + head * headDim;
				this.#normHead(keys, first + offset, this.#norms.k, cache.k, start + offset);
				rotate(cache.k, start + offset, span.rotation, token);
			}
		}
	}

	/** Parts queries from gates, which lie head by head in `attn_q`; norms and rotates the queries. */
	#queries(queriesAndGates: Float32Array, span: MixerSpan): { q: Float32Array; gate: Float32Array } {
		const { heads, headDim } = this.#graphs.shape.attention;
		const q = new Float32Array(span.tokens * this.width);
		const gate = new Float32Array(span.tokens * this.width);
		for (let token = 0; token < span.tokens; token++) {
			for (let head = 0; head < heads; head++) {
				const source = ((span.firstRow + token) * heads + head) * 2 * headDim;
				const target = (token * heads + head) * headDim;
				this.#normHead(queriesAndGates, source, this.#norms.q, q, target);
				rotate(q, target, span.rotation, token);
				gate.set(queriesAndGates.subarray(source + headDim, source + 2 * headDim), target);
			}
		}
		return { q, gate };
	}

	#normHead(from: Float32Array, source: number, weight: Float32Array, to: Float32Array, target: number): void {
		const { rmsEpsilon } = this.#graphs.shape;
		const scale = rootMeanSquareScale(from, source, weight.length, rmsEpsilon);
		for (let i = 0; i < weight.length; i++) to[target + i] = from[source + i]! * scale * weight[i]!;
	}
}

/** (tokens, length) with 1 where the token may look: at everything up to itself. The tokens are the last ones. */
function causalMask(tokens: number, length: number): Uint8Array {
	const mask = new Uint8Array(tokens * length);
	for (let token = 0; token < tokens; token++)
		mask.fill(1, token * length, token * length + length - tokens + token + 1);
	return mask;
}
