import type { ModelShape } from "./shape.ts";
import type { ExpertWeights, TensorType, WeightMatrix } from "./weight-matrix.ts";

/** Where weights come from: a GGUF file (however many shards), or a seed for the synthetic geometry. Reads ranges, never the file whole. */
export interface WeightSource {
	has(tensor: string): boolean;
	/** A two-dimensional tensor as raw bytes. Throws `bad_gguf` when it is missing or of another shape than stated. */
	matrix(tensor: string): Promise<WeightMatrix>;
	/** Some rows of a two-dimensional tensor (token embeddings). */
	matrixRows(tensor: string, first: number, count: number): Promise<WeightMatrix>;
	/** A tensor of any rank, widened to f32 in element order. */
	floats(tensor: string): Promise<Float32Array>;
	/** The three matrices of one routed expert; also from the fused `ffn_gate_up_exps`. */
	expert(layer: number, expert: number): Promise<ExpertWeights>;
	/** The types of a layer's routed gate and up matrices, without reading them. */
	expertTypes(layer: number): { readonly gate: TensorType; readonly up: TensorType };
	/** The shared expert of a layer. */
	sharedExpert(layer: number): Promise<ExpertWeights>;
	close(): Promise<void>;
}

/** A model ready to be run or served. */
export interface Model {
	readonly name: string;
	/** SHA-256 over the header bytes (up to the data offset) of all shards in order (wire.md section 5). */
	readonly modelId: Uint8Array;
	readonly weightsKind: "file" | "synthetic";
	readonly shape: ModelShape;
	readonly weights: WeightSource;
	/** GGUF metadata: the tokenizer and the chat template are read from it. */
	readonly metadata: ReadonlyMap<string, unknown>;
}
