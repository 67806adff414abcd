import { typeNameOf } from "../model/ggml-types.ts";
import type { FileModel } from "../model/open-model.ts";

/** What a model is, for people and scripts: geometry, bytes, and where they are by tensor type. */
export function describeModel(model: FileModel) {
	const { shape, gguf } = model;
	const types = new Map<string, { tensors: number; bytes: number }>();
	let expertBytes = 0;
	for (const tensor of gguf.tensors.values()) {
		const type = typeNameOf(tensor.ggmlType);
		const sum = types.get(type) ?? { tensors: 0, bytes: 0 };
		types.set(type, { tensors: sum.tensors + 1, bytes: sum.bytes + tensor.bytes });
		if (/_exps\.weight$/.test(tensor.name)) expertBytes += tensor.bytes;
	}
	return {
		name: model.name,
		modelId: Buffer.from(model.modelId).toString("hex"),
		architecture: model.metadata.get("general.architecture"),
		...shape,
		fullAttention: shape.fullAttention.flatMap((full, layer) => (full ? [layer] : [])),
		bytes: gguf.shards.reduce((sum, { fileBytes }) => sum + fileBytes, 0),
		/** Of all layers' routed experts: what a swarm can take off the backbone. */
		expertBytes,
		files: gguf.shards.map(({ path, fileBytes }) => ({ path, bytes: fileBytes })),
		types: Object.fromEntries([...types].sort((a, b) => b[1].bytes - a[1].bytes)),
	};
}
