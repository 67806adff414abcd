import { formatTable } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";

export const modelListCommand = defineCommand({
	path: "model list",
	section: "model",
	summary: "the models that can be named",
	options: {},
	example: "kvasir model list",
	async run({ home }) {
		const [{ listModels }, { tinyModelPath }] = await Promise.all([
			import("../../model/registry.ts"),
			import("../../model/synthetic.ts"),
		]);
		const registered = await listModels(home);
		const shipped = { name: "tiny", path: tinyModelPath, weights: "file" };
		const files = registered.map((model) => ({ ...model, weights: "file" }));
		const synthetic = { name: "122b", path: null, weights: "synthetic" };
		const known = registered.some(({ name }) => name === "122b") ? [] : [synthetic];
		return { data: { models: [shipped, ...files, ...known] } };
	},
	render: ({ models }) =>
		formatTable(
			["model", "weights", "file"],
			models.map(({ name, weights, path }) => [name, weights, path ?? "one layer of the true geometry, made up"]),
		),
});
