import { nBitsExpertGraph } from "../../model/onnx/nbits-graph.ts";
import type { ExpertWeights } from "../../model/weight-matrix.ts";
import type { ExpertEngine } from "../engine.ts";
import { onnxruntimeVersion } from "../onnxruntime.ts";
import { openSessionEngine } from "../session-engine.ts";
import { nBitsBytes, nBitsMatrix } from "./nbits-weights.ts";

export interface OnnxEngineOptions {
	/** Rows are vectors of this many values. */
	readonly hidden: number;
	readonly memoryBytes: number;
	/** onnxruntime's execution provider. @default cpu */
	readonly provider?: "cpu" | "webgpu" | "cuda" | "coreml" | "dml";
	/** What computes, as the class names it. */
	readonly device: string;
}

/**
 * The throughput class: onnxruntime's own kernels over the file's exact weights. On the CPU activations are rounded to int8
 * per block of 32 (accuracy level 4); elsewhere products have fp32 accuracy, and no operator may fall back to the CPU.
 * numerics.md section 1 states its tolerance; it promises no bits.
 */
export async function openOnnxEngine(options: OnnxEngineOptions): Promise<ExpertEngine> {
	const { hidden, memoryBytes, provider = "cpu", device } = options;
	const level = provider === "cpu" ? 4 : 0;
	return openSessionEngine({
		engineClass: `ort:${await onnxruntimeVersion()}:${provider}:${classWord(device)}`,
		hidden,
		memoryBytes,
		graph: ({ gate, up, down }) => nBitsExpertGraph(nBitsMatrix(gate), nBitsMatrix(up), nBitsMatrix(down), level),
		bytesOf: ({ gate, up, down }: ExpertWeights) => nBitsBytes(gate) + nBitsBytes(up) + nBitsBytes(down),
		session: { providers: [provider], providerOnly: provider !== "cpu" },
	});
}

/** A device's name as one word of a class. */
function classWord(name: string): string {
	return (
		name
			.toLowerCase()
			.replaceAll(/[^a-z0-9]+/g, "-")
			.replaceAll(/^-|-$/g, "")
			.slice(0, 40) || "unknown"
	);
}
