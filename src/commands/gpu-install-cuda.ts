import { arch } from "node:os";
import { defineCommand } from "./program/command.ts";

export const gpuInstallCudaCommand = defineCommand({
	path: "gpu install-cuda",
	section: "gpu",
	summary: "download onnxruntime's CUDA libraries, for --gpu=cuda --engine onnx",
	options: {},
	example: "kvasir gpu install-cuda",
	async run({ host, signal, progress }) {
		const { installCuda } = await import("../experts/onnx/install-cuda.ts");
		const { execPath, env, platform } = host;
		const options = { execPath, env, platform: `${platform}/${arch()}`, signal };
		const folder = await progress("downloading the CUDA libraries", () => installCuda(options));
		return { data: { folder } };
	},
	render: ({ folder }) => `The CUDA libraries are in ${folder}`,
});
