import { packagePath } from "../io/built.ts";
import { sha256 } from "../io/crypto.ts";
import type { Geometry } from "./geometries.ts";
import { openGguf } from "./gguf.ts";
import type { Metadata } from "./metadata.ts";
import type { Model } from "./model.ts";
import type { ModelShape } from "./shape.ts";
import { shapeMetadata } from "./shape-metadata.ts";
import { syntheticWeights } from "./synthetic-weights.ts";

/** The shipped fixture: its tokenizer serves synthetic models too. */
export const tinyModelPath = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");

/** A model of random weights; stop tokens mean nothing in it. */
export interface SyntheticModel extends Model {
	readonly weightsKind: "synthetic";
}

/** The first layer (a delta net) of a known geometry with random weights, and the fixture's vocabulary: for proof and speed, not for sense. */
export async function openSynthetic(geometry: Geometry): Promise<SyntheticModel> {
	const tokenizer = await tinyTokenizer();
	const tokens = tokenizer.get("tokenizer.ggml.tokens") as unknown[];
	const shape: ModelShape = {
		...geometry.shape,
		layers: 1,
		vocab: tokens.length,
		fullAttention: geometry.shape.fullAttention.slice(0, 1),
	};
	const name = `${geometry.title}, synthetic, one layer`;
	const metadata = new Map([...shapeMetadata(shape), ["general.name", name] as const, ...tokenizer]);
	const description = `kvasir synthetic 1 ${JSON.stringify([...metadata])}`;
	const modelId = new Uint8Array(sha256(new TextEncoder().encode(description)));
	const weights = syntheticWeights(shape);
	return { name: geometry.name, modelId, weightsKind: "synthetic", shape, weights, metadata };
}

async function tinyTokenizer(): Promise<Metadata> {
	const gguf = await openGguf(tinyModelPath);
	await gguf.close();
	return new Map([...gguf.metadata].filter(([key]) => key.startsWith("tokenizer.")));
}

/** The prompt a command decodes when none was given; 6 tokens for a synthetic model (spec: cli.md, `122b`), 7 for the fixture. */
export function defaultPromptOf(model: Pick<Model, "weightsKind">): string {
	return model.weightsKind === "synthetic" ? "The capital of France" : "The capital of France is";
}
