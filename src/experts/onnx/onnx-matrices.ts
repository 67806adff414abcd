import { KvasirError } from "../../errors.ts";
import { nBitsMatrixGraph } from "../../model/onnx/nbits-graph.ts";
import type { MatrixEngine } from "../matrices.ts";
import { onnxruntimeVersion, openSession, tensorConstructor } from "../onnxruntime.ts";
import { nBitsMatrix } from "./nbits-weights.ts";

/** Dense matrices of engine onnx, on the CPU: int8 activations, one onnxruntime session a matrix. */
export async function openOnnxMatrices({ threads = 1 }: { threads?: number } = {}): Promise<MatrixEngine> {
	const Tensor = await tensorConstructor();
	return {
		engineClass: `ort:${await onnxruntimeVersion()}:cpu`,
		async group(name, matrices) {
			const inputs = matrices[0]?.inputs ?? 0;
			if (matrices.some((matrix) => matrix.inputs !== inputs)) {
				throw new KvasirError("unsupported_shape", `Cannot load ${name}: its matrices read rows of different widths`);
			}
			const sessions = await Promise.all(
				matrices.map((matrix) => openSession(nBitsMatrixGraph(nBitsMatrix(matrix), 4), { threads })),
			);
			return {
				async multiply(rows, rowCount) {
					const x = new Tensor("float32", rows.subarray(0, rowCount * inputs), [rowCount, inputs]);
					const outs: Float32Array[] = [];
					for (const session of sessions) outs.push((await session.run({ x })).y!.data as Float32Array);
					return outs;
				},
				async close() {
					for (const session of sessions) await session.release();
				},
			};
		},
	};
}
