import type { MatrixEngine } from "../../experts/matrices.ts";
import type { Model } from "../../model/model.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { Mixer, MixerSpan } from "./mixer.ts";
import { copyIn, copyOut, forEachCall, layOutWork, type MixerCall } from "./mixer-calls.ts";
import { loadProjections, type Projections } from "./projections.ts";
import type { TextMemory } from "./text-memory.ts";

/** What a layer remembers of a text, per token: a row of keys and a row of values. */
export function attentionBytesPerToken({ attention }: ModelShape): number {
	return 2 * 4 * attention.kvHeads * attention.headDim;
}

/** A block's scores (mixer-kernel/attention.ts), at the start of the work space; then the frequencies of the rotation. */
const scoreBytes = 4 * 32;

/** The work space of a kernel call. */
export function attentionWork({ attention }: ModelShape) {
	const { heads, kvHeads, headDim, rotaryDims } = attention;
	return layOutWork(scoreBytes + 4 * rotaryDims, {
		queries: 2 * heads * headDim,
		k: kvHeads * headDim,
		v: kvHeads * headDim,
		q: heads * headDim,
		read: heads * headDim,
		sums: 2 * heads,
		turns: rotaryDims,
	});
}

/** Loads the gated attention of one layer (qwen35moe.md section 4). */
export async function loadAttention(
	model: Model,
	layer: number,
	matrices: MatrixEngine,
	memory: TextMemory,
): Promise<Mixer> {
	const { weights, shape } = model;
	const name = (tensor: string) => `blk.${layer}.${tensor}.weight`;
	const norms = {
		q: memory.addConstant(await weights.floats(name("attn_q_norm"))),
		k: memory.addConstant(await weights.floats(name("attn_k_norm"))),
	};
	const projections = await loadProjections(model, layer, matrices, {
		into: ["attn_q", "attn_k", "attn_v"],
		out: "attn_output",
	});
	return new Attention(shape, layer, norms, projections);
}

class Attention implements Mixer {
	readonly projections: Projections;
	readonly width: number;
	readonly #shape: ModelShape;
	readonly #layer: number;
	/** Addresses (headDim), in every memory. */
	readonly #norms: { readonly q: number; readonly k: number };
	readonly #work: ReturnType<typeof attentionWork>;

	constructor(
		shape: ModelShape,
		layer: number,
		norms: { readonly q: number; readonly k: number },
		projections: Projections,
	) {
		this.#shape = shape;
		this.#layer = layer;
		this.#norms = norms;
		this.#work = attentionWork(shape);
		this.projections = projections;
		this.width = shape.attention.heads * shape.attention.headDim;
	}

	mix(projected: readonly Float32Array[], spans: readonly MixerSpan[], mixed: Float32Array): void {
		const { at } = this.#work;
		const { kvHeads, headDim } = this.#shape.attention;
		forEachCall(spans, this.#layer, this.#work, (call) => {
			copyIn(call, projected[0]!, 2 * this.width, at.queries);
			copyIn(call, projected[1]!, kvHeads * headDim, at.k);
			copyIn(call, projected[2]!, kvHeads * headDim, at.v);
			this.#compute(call);
			copyOut(call, at.read, mixed, this.width);
		});
	}

	#compute({ memory: { call }, spans, rows }: MixerCall): void {
		const { at, table } = this.#work;
		const { rmsEpsilon: epsilon, attention } = this.#shape;
		const { heads, kvHeads, headDim, rotaryDims, ropeTheta } = attention;
		const pairs = rotaryDims / 2;
		call.rotations(table, spans, ropeTheta, rotaryDims, scoreBytes, at.turns);
		call.remember(table, spans, at.k, at.v, this.#norms.k, epsilon, at.turns, pairs, kvHeads, headDim);
		call.prepareQueries(at.queries, rows, this.#norms.q, epsilon, at.turns, pairs, heads, headDim, at.q);
		call.attend(table, spans, at.q, heads, kvHeads, headDim, at.sums, at.read, 0);
		call.finishRead(at.read, at.sums, at.queries, rows * heads, headDim);
	}
}
