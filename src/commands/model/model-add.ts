import { defineCommand } from "../program/command.ts";

export const modelAddCommand = defineCommand({
	path: "model add",
	section: "model",
	summary: "register a GGUF file under a name",
	operands: [
		{ name: "<name>", about: "what --model will call it" },
		{ name: "<path>", about: "the GGUF file; any part of a split one stands for all of it" },
	],
	options: {},
	example: "kvasir model add 122b models/Qwen3.5-122B-A10B-Q4_K_M-00001-of-00003.gguf",
	async run({ home }, _options, [name, path]) {
		const { addModel } = await import("../../model/registry.ts");
		return { data: await addModel(home, name!, path!) };
	},
	render: ({ name, path }) => `${name} is ${path}\nTry it: kvasir verify --model ${name}`,
});
