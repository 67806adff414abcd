import { expertGraph } from "../../model/onnx/matrix-graph.ts";
import type { ExpertWeights } from "../../model/weight-matrix.ts";
import type { ExpertEngine } from "../engine.ts";
import { openSessionEngine } from "../session-engine.ts";
import { plainMatrix } from "./plain-matrix.ts";

/** Engine f32: every weight widened to f32, one onnxruntime session an expert, all on the calling thread. */
export function openF32Engine({
	hidden,
	memoryBytes,
}: {
	hidden: number;
	memoryBytes?: number;
}): Promise<ExpertEngine> {
	return openSessionEngine({
		engineClass: "f32",
		hidden,
		...(memoryBytes === undefined ? {} : { memoryBytes }),
		graph: ({ gate, up, down }) => expertGraph(plainMatrix(gate), plainMatrix(up), plainMatrix(down)),
		bytesOf: f32Bytes,
	});
}

function f32Bytes({ gate, up, down }: ExpertWeights): number {
	return [gate, up, down].reduce((sum, { outputs, inputs }) => sum + 4 * outputs * inputs, 0);
}
