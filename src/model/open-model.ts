import { basename } from "node:path";
import { type Gguf, openGguf } from "./gguf.ts";
import { ggufWeights } from "./gguf-weights.ts";
import type { Model } from "./model.ts";
import { shapeOf } from "./shape-of.ts";
import { checkTensors } from "./tensor-plan.ts";

/** A model from a file, with what the file says about itself. */
export interface FileModel extends Model {
	readonly weightsKind: "file";
	readonly gguf: Gguf;
}

/** True for a model that has a file to read from. */
export function isFileModel(model: Model): model is FileModel {
	return model.weightsKind === "file" && "gguf" in model;
}

/**
 * Opens a GGUF model (any part of a split one) and checks that it can be run; weights stay on disk.
 * Throws `file_missing`, `bad_file`, `bad_gguf`, `unsupported_architecture`, `unsupported_shape`, `unsupported_type`.
 *
 * @param name what to call it; the file's name otherwise
 */
export async function openModel(path: string, name: string = basename(path, ".gguf")): Promise<FileModel> {
	const gguf = await openGguf(path);
	try {
		const shape = shapeOf(gguf.metadata, gguf.tensors);
		checkTensors(shape, gguf.tensors);
		const weights = ggufWeights(gguf, shape);
		return { name, modelId: gguf.modelId, weightsKind: "file", shape, weights, metadata: gguf.metadata, gguf };
	} catch (error) {
		await gguf.close();
		throw error;
	}
}
