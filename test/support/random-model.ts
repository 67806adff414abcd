import { packagePath } from "../../src/io/built.ts";
import { sha256 } from "../../src/io/crypto.ts";
import { rowBytesOf } from "../../src/model/ggml-types.ts";
import { openGguf } from "../../src/model/gguf.ts";
import type { ModelShape } from "../../src/model/shape.ts";
import { shapeMetadata } from "../../src/model/shape-metadata.ts";
import { recipeOf } from "../../src/model/synthetic-recipe.ts";
import { fusedGateUp, globalTensors, layerTensors, type PlannedTensor } from "../../src/model/tensor-plan.ts";
import type { TensorType } from "../../src/model/weight-matrix.ts";
import { Xorshift } from "../../src/model/xorshift.ts";
import { type TensorToWrite, type WriteOptions, writeGguf } from "./gguf-writer.ts";
import { randomBlocks } from "./random-blocks.ts";

/** The dimensions of a random model; the rest of its shape follows. */
export interface RandomDims {
	readonly layers: number;
	/** Full attention every so many layers. */
	readonly interval: number;
	readonly hidden: number;
	readonly heads: number;
	readonly kvHeads: number;
	readonly headDim: number;
	readonly rotaryDims: number;
	readonly keyHeads: number;
	readonly valueHeads: number;
	readonly stateDim: number;
	readonly convKernel: number;
	readonly experts: number;
	readonly topK: number;
	readonly expertWidth: number;
	readonly sharedWidth: number;
}

/** Small dimensions that no other fixture has: nothing may be hard-coded to the tiny model. */
export const oddDims: RandomDims = {
	layers: 3,
	interval: 3,
	hidden: 512,
	heads: 6,
	kvHeads: 3,
	headDim: 128,
	rotaryDims: 32,
	keyHeads: 2,
	valueHeads: 6,
	stateDim: 128,
	convKernel: 3,
	experts: 10,
	topK: 3,
	expertWidth: 256,
	sharedWidth: 768,
};

/** Types by use; each falls back to the one before: expert down to matrices, embedding and output to matrices. */
export interface RandomTypes {
	readonly matrices: TensorType;
	readonly down?: TensorType;
	readonly embedding?: TensorType;
	/** "tied": no output.weight, the embedding is the head. */
	readonly output?: TensorType | "tied";
	/** Write `ffn_gate_up_exps` instead of gate and up. */
	readonly fused?: boolean;
}

/** The shape a model of these dimensions has. */
export function shapeOfDims(dims: RandomDims): ModelShape {
	const { layers, interval, hidden, experts, topK, expertWidth, sharedWidth } = dims;
	return {
		layers,
		hidden,
		vocab: 512,
		contextLength: 1024,
		fullAttention: Array.from({ length: layers }, (_, layer) => (layer + 1) % interval === 0),
		attention: {
			heads: dims.heads,
			kvHeads: dims.kvHeads,
			headDim: dims.headDim,
			rotaryDims: dims.rotaryDims,
			ropeTheta: 1e6,
		},
		deltaNet: {
			keyHeads: dims.keyHeads,
			valueHeads: dims.valueHeads,
			headDim: dims.stateDim,
			convKernel: dims.convKernel,
		},
		experts,
		topK,
		expertWidth,
		sharedWidth,
		rmsEpsilon: Math.fround(1e-6),
	};
}

/** Writes a complete qwen35moe model of any dimensions with random weights and the tiny fixture's 512 tokens; returns its files. */
export async function writeRandomModel(
	path: string,
	dims: RandomDims,
	types: RandomTypes,
	seed: string,
	options: WriteOptions = {},
): Promise<string[]> {
	const shape = shapeOfDims(dims);
	const planned = [...globalTensors(shape)].filter(({ name }) => name !== "output.weight" || types.output !== "tied");
	for (let layer = 0; layer < shape.layers; layer++) {
		const own = layerTensors(shape, layer);
		const isFused = ({ name }: PlannedTensor) => types.fused === true && /ffn_(gate|up)_exps/.test(name);
		planned.push(...own.filter((tensor) => !isFused(tensor)), ...(types.fused ? [fusedGateUp(shape, layer)] : []));
	}
	const tensors = planned.map((tensor) => randomTensor(tensor, types, seed));
	const metadata = new Map<string, unknown>([...(await tinyTokenizer()), ...shapeMetadata(shape)]);
	metadata.set("general.name", `random ${seed}`);
	metadata.set("qwen35moe.rope.freq_base", { type: "f32", value: shape.attention.ropeTheta });
	return writeGguf(path, metadata, tensors, options);
}

async function tinyTokenizer(): Promise<[string, unknown][]> {
	const gguf = await openGguf(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	await gguf.close();
	return [...gguf.metadata].filter(([key]) => key.startsWith("tokenizer."));
}

function randomTensor(tensor: PlannedTensor, types: RandomTypes, seed: string): TensorToWrite {
	const { name, ne } = tensor;
	const count = ne.reduce((product, dimension) => product * dimension, 1);
	const type = typeOf(tensor, types);
	const byteLength = rowBytesOf(type, ne[0]!) * (count / ne[0]!);
	if (!Number.isInteger(byteLength)) throw new Error(`${name}: ${ne[0]} is no whole number of ${type} blocks`);
	const random = new Xorshift(sha256(Buffer.from(`${seed} ${name}`)));
	return { name, ne, type, byteLength, bytes: () => randomBlocks(random, type, count, recipeOf(tensor)) };
}

function typeOf(tensor: PlannedTensor, types: RandomTypes): TensorType {
	const { name } = tensor;
	if (recipeOf(tensor).small) return "F32";
	if (name === "token_embd.weight") return types.embedding ?? types.matrices;
	if (name === "output.weight" && types.output !== "tied") return types.output ?? types.matrices;
	return name.includes("down_exps") ? (types.down ?? types.matrices) : types.matrices;
}
