import type { Reader } from "./options.ts";

/** What a worker that this program starts computes with, as words of `kvasir join`. */
export type WorkerKind = readonly string[];

/** Reads `cpu`, `onnx`, `gpu=ID` or `onnx-gpu=ID`; the ID is that of an adapter, as `join --gpu=webgpu:ID` takes it. */
export const workerKind: Reader<WorkerKind> = {
	expected: "cpu, onnx, gpu=ID or onnx-gpu=ID",
	read(text) {
		if (text === "cpu") return ["--engine", "canonical"];
		if (text === "onnx") return ["--engine", "onnx"];
		const [, onnx, id] = /^(onnx-)?gpu=([a-z0-9-]+)$/.exec(text) ?? [];
		if (!id) return undefined;
		return ["--engine", onnx ? "onnx" : "canonical", `--gpu=webgpu:${id}`, "--memory", "1GiB"];
	},
};
