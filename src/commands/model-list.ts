import { stat } from "node:fs/promises";
import { formatBytes } from "../io/format-amounts.ts";
import { formatTable } from "../ui/table.ts";
import { defineCommand } from "./command.ts";

export const modelListCommand = defineCommand({
	path: "model list",
	section: "model",
	summary: "the models that can be named",
	options: {},
	example: "kvasir model list",
	async run(context) {
		const { listModels } = await import("./model-registry.ts");
		const models = await listModels(context.home);
		const withBytes = models.map(async (model) => ({
			...model,
			bytes: await stat(model.path).then(
				({ size }) => size,
				() => null,
			),
		}));
		return { data: { models: await Promise.all(withBytes) } };
	},
	render: ({ models }) =>
		formatTable(
			["model", "size", "path"],
			models.map(({ name, bytes, path }) => [name, bytes === null ? "missing" : formatBytes(bytes), path]),
		),
});
