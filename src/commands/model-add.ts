import { defineCommand } from "./command.ts";

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
	async run(context, _options, [name, path]) {
		const { openModel } = await import("../model/open-model.ts");
		const { registerModel } = await import("./model-registry.ts");
		const { describeModel } = await import("./describe-model.ts");
		const model = await openModel(path!, name);
		try {
			await registerModel(context.home, name!, model.gguf.shards[0]!.path);
			return { data: describeModel(model) };
		} finally {
			await model.weights.close();
		}
	},
	render: ({ name, layers, experts, hidden, bytes }) =>
		`${name}: ${layers} layers x ${experts} experts, hidden ${hidden}, ${bytes} bytes\nTry it: kvasir verify --model ${name}`,
});
