import { formatBytes } from "../io/format-amounts.ts";
import { formatFacts, formatTable } from "../ui/table.ts";
import { defineCommand } from "./command.ts";

export const modelInspectCommand = defineCommand({
	path: "model inspect",
	section: "model",
	summary: "geometry, tensor types and bytes of a model",
	operands: [{ name: "<model>", about: "tiny, a registered name, or the path of a GGUF file" }],
	options: {},
	example: "kvasir model inspect tiny",
	async run(context, _options, [nameOrPath]) {
		const { openModel } = await import("../model/open-model.ts");
		const { findModel } = await import("./model-registry.ts");
		const { describeModel } = await import("./describe-model.ts");
		const { name, path } = await findModel(context.home, nameOrPath!);
		const model = await openModel(path, name);
		try {
			return { data: describeModel(model) };
		} finally {
			await model.weights.close();
		}
	},
	render(model) {
		const facts = formatFacts([
			["model", `${model.name} (${String(model.architecture)})`],
			["layers", `${model.layers}, of them full attention: ${model.fullAttention.join(", ")}`],
			["experts", `${model.experts} a layer, ${model.topK} of them for each row`],
			["hidden", `${model.hidden}, expert width ${model.expertWidth}, shared ${model.sharedWidth}`],
			["vocabulary", model.vocab],
			["context", model.contextLength],
			["bytes", `${formatBytes(model.bytes)}, ${formatBytes(model.expertBytes)} of them in routed experts`],
			["model id", model.modelId],
		]);
		const rows = Object.entries(model.types).map(([type, { tensors, bytes }]) => [type, tensors, formatBytes(bytes)]);
		return `${facts}\n\n${formatTable(["type", "tensors", "size"], rows)}`;
	},
});
