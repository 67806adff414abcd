import type { MatrixEngine, MatrixGroup } from "../../experts/matrices.ts";
import {
	type InferenceSession,
	type MakeTensor,
	openSession,
	type Tensor,
	tensorConstructor,
} from "../../experts/onnxruntime.ts";
import type { Model } from "../../model/model.ts";
import { deltaNetGraph } from "../../model/onnx/delta-net-graph.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { Mixer, MixerSpan } from "./mixer.ts";
import type { DeltaNetState } from "./sequence.ts";

/** The graph of all gated delta net layers, and the dimensions it runs with. */
export interface DeltaNetGraph {
	readonly session: InferenceSession;
	readonly Tensor: MakeTensor;
	readonly shape: ModelShape;
}

export async function openDeltaNetGraph(shape: ModelShape): Promise<DeltaNetGraph> {
	return { session: await openSession(deltaNetGraph(shape)), Tensor: await tensorConstructor(), shape };
}

/** Loads the gated delta net of one layer (qwen35moe.md section 3). */
export async function loadDeltaNet(
	model: Model,
	layer: number,
	matrices: MatrixEngine,
	graph: DeltaNetGraph,
): Promise<Mixer> {
	const { weights } = model;
	const { keyHeads, valueHeads, headDim, convKernel } = graph.shape.deltaNet;
	const channels = (2 * keyHeads + valueHeads) * headDim;
	const name = (tensor: string) => `blk.${layer}.${tensor}`;
	const constant = async (tensor: string, dims: number[]) =>
		new graph.Tensor("float32", await weights.floats(name(tensor)), dims);
	const projections = ["attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha"];
	const constants = {
		conv: await constant("ssm_conv1d.weight", [channels, 1, convKernel]),
		decay: await constant("ssm_a", [valueHeads]),
		timeStep: await constant("ssm_dt.bias", [valueHeads]),
		norm: await constant("ssm_norm.weight", [headDim]),
	};
	const input = await matrices.group(
		name("mixer_in"),
		await Promise.all(projections.map((tensor) => weights.matrix(name(`${tensor}.weight`)))),
	);
	const output = await matrices.group(name("mixer_out"), [await weights.matrix(name("ssm_out.weight"))]);
	return new DeltaNet(graph, constants, layer, input, output);
}

class DeltaNet implements Mixer {
	readonly input: MatrixGroup;
	readonly output: MatrixGroup;
	readonly width: number;
	readonly #graph: DeltaNetGraph;
	readonly #constants: Readonly<Record<string, Tensor>>;
	readonly #layer: number;

	constructor(
		graph: DeltaNetGraph,
		constants: Readonly<Record<string, Tensor>>,
		layer: number,
		input: MatrixGroup,
		output: MatrixGroup,
	) {
		this.#graph = graph;
		this.#constants = constants;
		this.#layer = layer;
		this.input = input;
		this.output = output;
		this.width = graph.shape.deltaNet.valueHeads * graph.shape.deltaNet.headDim;
	}

	async mix(projected: readonly Float32Array[], { sequence, firstRow, tokens }: MixerSpan): Promise<Float32Array> {
		const { session, Tensor, shape } = this.#graph;
		const { keyHeads, valueHeads, headDim } = shape.deltaNet;
		const rowsOf = (index: number, width: number, dims: readonly number[]) =>
			new Tensor("float32", projected[index]!.subarray(firstRow * width, (firstRow + tokens) * width), dims);
		const channels = (2 * keyHeads + valueHeads) * headDim;
		const memory = sequence.layers[this.#layer] as DeltaNetState;
		const feeds = {
			...this.#constants,
			qkv: rowsOf(0, channels, [1, tokens, channels]),
			z: rowsOf(1, this.width, [tokens * valueHeads, headDim]),
			b: rowsOf(2, valueHeads, [1, tokens, valueHeads]),
			a: rowsOf(3, valueHeads, [1, tokens, valueHeads]),
			rows: memory.rows,
			state: memory.state,
		};
		const results = await session.run(feeds, { y: null, newRows: null, newState: memory.state });
		memory.rows = results.newRows!;
		return results.y!.data as Float32Array;
	}

	async close(): Promise<void> {
		await this.input.close();
		await this.output.close();
	}
}
