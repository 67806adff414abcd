import { KvasirError } from "../../errors.ts";
import type { MakeTensor, Tensor } from "../../experts/onnxruntime.ts";
import type { ModelShape } from "../../model/shape.ts";

/** What a gated delta net layer remembers: its size does not depend on the length of the sequence. */
export interface DeltaNetState {
	/** (1, C, K-1): the last rows before the convolution. */
	rows: Tensor;
	/** (1, Nv, d, d): updated in place. */
	readonly state: Tensor;
}

/** Keys and values of every token so far: (length, kvHeads x headDim) each, in arrays that grow. */
export interface AttentionCache {
	k: Float32Array;
	v: Float32Array;
}

export type LayerState = DeltaNetState | AttentionCache;

/** One text being decoded: how many tokens went in, and what each layer remembers of them. Cannot be rolled back. */
export class Sequence {
	readonly id: number;
	readonly layers: readonly LayerState[];
	/** Tokens decoded so far. */
	length = 0;

	constructor(id: number, layers: readonly LayerState[]) {
		this.id = id;
		this.layers = layers;
	}
}

/** A sequence without tokens. */
export function emptySequence(id: number, shape: ModelShape, Tensor: MakeTensor): Sequence {
	const { keyHeads, valueHeads, headDim, convKernel } = shape.deltaNet;
	const channels = (2 * keyHeads + valueHeads) * headDim;
	const zeros = (dims: number[]) =>
		new Tensor("float32", new Float32Array(dims.reduce((product, dim) => product * dim, 1)), dims);
	const layers = shape.fullAttention.map((attention) =>
		attention
			? { k: new Float32Array(0), v: new Float32Array(0) }
			: { rows: zeros([1, channels, convKernel - 1]), state: zeros([1, valueHeads, headDim, headDim]) },
	);
	return new Sequence(id, layers);
}

/** Makes room for `tokens` more tokens in a cache of rows of `width`, at least doubling it. Throws `bounds` beyond the context. */
export function growCache(cache: AttentionCache, length: number, tokens: number, width: number, most: number): void {
	const needed = length + tokens;
	if (needed > most) {
		throw new KvasirError("bounds", `Cannot decode: ${needed} tokens exceed the context of ${most}`);
	}
	if (needed * width <= cache.k.length) return;
	const capacity = Math.min(most, Math.max(needed, 2 * (cache.k.length / width), 64));
	cache.k = enlarged(cache.k, capacity * width);
	cache.v = enlarged(cache.v, capacity * width);
}

function enlarged(values: Float32Array, length: number): Float32Array {
	const larger = new Float32Array(length);
	larger.set(values);
	return larger;
}
