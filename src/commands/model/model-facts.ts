import type { Model } from "../../model/model.ts";
import type { ModelFacts } from "../../protocol/messages.ts";

/** The model as the wire names it: its name stands in URLs and headers, so nothing but letters, digits, dots and dashes. */
export function modelFactsOf({ name, modelId, shape }: Pick<Model, "name" | "modelId" | "shape">): ModelFacts {
	const { layers, experts, topK, hidden, expertWidth } = shape;
	return { name: name.replace(/[^A-Za-z0-9._-]+/g, "-"), modelId, layers, experts, topK, hidden, expertWidth };
}
