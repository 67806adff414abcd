import { formatBytes } from "../../io/format-amounts.ts";
import type { ModelReport } from "../../model/inspect.ts";
import { formatFacts, formatTable } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";

export const modelInspectCommand = defineCommand({
	path: "model inspect",
	section: "model",
	summary: "geometry, tensor types and bytes of a model",
	operands: [{ name: "<model>", about: "tiny, a registered name, or the path of a GGUF file" }],
	options: {},
	example: "kvasir model inspect tiny",
	async run({ home }, _options, [nameOrPath]) {
		const [{ openNamedModel }, { inspectModel }] = await Promise.all([
			import("../../model/resolve-model.ts"),
			import("../../model/inspect.ts"),
		]);
		const model = await openNamedModel(home, nameOrPath!);
		try {
			return { data: inspectModel(model) };
		} finally {
			await model.weights.close();
		}
	},
	render: describe,
});

function describe({ shape, ...model }: ModelReport): string {
	const full = shape.fullAttention.flatMap((is, layer) => (is ? [layer] : []));
	const facts = formatFacts([
		["model", `${model.name}, ${model.weights === "file" ? "from files" : "synthetic weights"}`],
		["geometry", model.geometry ?? "of its own"],
		[
			"layers",
			`${shape.layers}, of them full attention: ${full.join(", ") || "none"}; MTP blocks skipped: ${model.mtpBlocks}`,
		],
		["experts", `${shape.experts} a layer, ${shape.topK} of them for each row`],
		["hidden", `${shape.hidden}, expert width ${shape.expertWidth}, shared ${shape.sharedWidth}`],
		["vocabulary", shape.vocab],
		["context", shape.contextLength],
		["bytes", `${formatBytes(model.bytes)}, ${formatBytes(model.expertBytes)} of them in routed experts`],
		["expert", `${formatBytes(Math.max(...model.bytesPerExpert))} at most`],
		["model id", model.modelId],
	]);
	const rows = model.types.map(({ type, tensors, bytes }) => [type, tensors, formatBytes(bytes)]);
	return `${facts}\n\n${formatTable(["type", "tensors", "size"], rows)}`;
}
