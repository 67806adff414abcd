import type { Reader } from "./program/options.ts";

/** What a worker that this program starts computes with, as words of `kvasir join`. */
export type WorkerKind = readonly string[];

/** Reads `cpu` or `onnx`, both also with `:threads=N`, `gpu=ID` or `onnx-gpu=ID`; the ID is that of an adapter, as `join --gpu=webgpu:ID` takes it. */
export const workerKind: Reader<WorkerKind> = {
	expected: "cpu or onnx, also as cpu:threads=2, gpu=ID or onnx-gpu=ID",
	read(text) {
		const [, cpu, threads] = /^(cpu|onnx)(?::threads=([1-9]\d{0,2}))?$/.exec(text) ?? [];
		if (cpu) return ["--engine", cpu === "onnx" ? "onnx" : "canonical", ...(threads ? ["--threads", threads] : [])];
		const [, onnx, id] = /^(onnx-)?gpu=([a-z0-9-]+)$/.exec(text) ?? [];
		if (!id) return undefined;
		return ["--engine", onnx ? "onnx" : "canonical", `--gpu=webgpu:${id}`, "--memory", "1GiB"];
	},
};
