import { geometryOf } from "./geometries.ts";
import { rowBytesOf, typeNameOf } from "./ggml-types.ts";
import { architecture } from "./metadata.ts";
import type { Model } from "./model.ts";
import type { FileModel } from "./open-model.ts";
import type { ModelShape } from "./shape.ts";
import { recipeOf } from "./synthetic-recipe.ts";
import { syntheticTensors } from "./synthetic-weights.ts";

/** What a model is, as one plain value. */
export interface ModelReport {
	readonly name: string;
	/** Hexadecimal. */
	readonly modelId: string;
	readonly weights: "file" | "synthetic";
	/** The known geometry its dimensions belong to. */
	readonly geometry: string | null;
	readonly shape: ModelShape;
	readonly mtpBlocks: number;
	readonly files: readonly { readonly path: string; readonly bytes: number }[];
	readonly tensors: number;
	/** Of all tensors. */
	readonly bytes: number;
	/** Of all routed experts that run. */
	readonly expertBytes: number;
	/** Of one expert, per layer: types may differ from layer to layer. */
	readonly bytesPerExpert: readonly number[];
	/** The largest share first. */
	readonly types: readonly { readonly type: string; readonly tensors: number; readonly bytes: number }[];
	/** Scalars as they are, lists by their length. */
	readonly metadata: Readonly<Record<string, unknown>>;
}

interface Listed {
	readonly name: string;
	readonly type: string;
	readonly bytes: number;
}

/** Describes an open model. */
export function inspectModel(model: Model | FileModel): ModelReport {
	const tensors = tensorsOf(model);
	const bytesPerExpert = model.shape.fullAttention.map((_, layer) =>
		expertBytesOf(tensors, layer, model.shape.experts),
	);
	return {
		name: model.name,
		modelId: Buffer.from(model.modelId).toString("hex"),
		weights: model.weightsKind,
		geometry: geometryOf(model.shape)?.name ?? null,
		shape: model.shape,
		mtpBlocks: Number(model.metadata.get(`${architecture}.nextn_predict_layers`) ?? 0),
		files: "gguf" in model ? model.gguf.shards.map(({ path, fileBytes }) => ({ path, bytes: fileBytes })) : [],
		tensors: tensors.length,
		bytes: tensors.reduce((sum, { bytes }) => sum + bytes, 0),
		expertBytes: bytesPerExpert.reduce((sum, bytes) => sum + bytes * model.shape.experts, 0),
		bytesPerExpert,
		types: typesOf(tensors),
		metadata: Object.fromEntries([...model.metadata].map(([key, value]) => [key, summaryOf(value)])),
	};
}

function tensorsOf(model: Model | FileModel): Listed[] {
	if ("gguf" in model) {
		return [...model.gguf.tensors.values()].map(({ name, ggmlType, bytes }) => ({
			name,
			type: typeNameOf(ggmlType),
			bytes,
		}));
	}
	return syntheticTensors(model.shape).map((tensor) => {
		const type = recipeOf(tensor).small ? "F32" : "Q4_K";
		const rows = tensor.ne.slice(1).reduce((product, dimension) => product * dimension, 1);
		return { name: tensor.name, type, bytes: rows * rowBytesOf(type, tensor.ne[0]!) };
	});
}

function expertBytesOf(tensors: readonly Listed[], layer: number, experts: number): number {
	const own = tensors.filter(({ name }) => name.startsWith(`blk.${layer}.ffn_`) && name.endsWith("_exps.weight"));
	return own.reduce((sum, { bytes }) => sum + bytes, 0) / experts;
}

function typesOf(tensors: readonly Listed[]): ModelReport["types"] {
	const types = new Map<string, { type: string; tensors: number; bytes: number }>();
	for (const { type, bytes } of tensors) {
		const sum = types.get(type) ?? { type, tensors: 0, bytes: 0 };
		types.set(type, { type, tensors: sum.tensors + 1, bytes: sum.bytes + bytes });
	}
	return [...types.values()].sort((a, b) => b.bytes - a.bytes);
}

function summaryOf(value: unknown): unknown {
	if (Array.isArray(value)) return value.length <= 8 ? value : `${value.length} values`;
	if (typeof value === "bigint") return String(value);
	return typeof value === "string" && value.length > 200 ? `${value.slice(0, 200)}...` : value;
}
