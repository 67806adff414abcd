import { formatTable } from "../ui/table.ts";
import { defineCommand } from "./program/command.ts";

export const gpuListCommand = defineCommand({
	path: "gpu list",
	section: "gpu",
	summary: "the graphics devices that --gpu=webgpu:ID can name",
	options: {},
	example: "kvasir gpu list",
	async run({ clock }) {
		const { askAdapters } = await import("../experts/gpu/ask-adapters.ts");
		return { data: { adapters: await askAdapters(clock) } };
	},
	render({ adapters }) {
		if (adapters.length === 0) return "No graphics device: no Vulkan, Metal or Direct3D 12 driver shows one";
		const rows = adapters.map(({ id, name, software }) => [
			`webgpu:${id}`,
			name,
			software ? "computes on the CPU" : "",
		]);
		return formatTable(["--gpu", "name", ""], rows);
	},
});
