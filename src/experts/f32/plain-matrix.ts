import { KvasirError } from "../../errors.ts";
import { dequantise } from "../../model/dequantise.ts";
import type { PlainMatrix } from "../../model/onnx/matrix-graph.ts";
import type { WeightMatrix } from "../../model/weight-matrix.ts";
import { allFinite } from "../finite.ts";

/** A matrix of the file widened to f32. Throws `bad_weights` for a weight that is not finite. */
export function plainMatrix({ type, outputs, inputs, bytes }: WeightMatrix): PlainMatrix {
	const values = dequantise(bytes, type);
	if (values.length !== outputs * inputs) {
		const state = `${values.length} weights for ${outputs} x ${inputs}`;
		throw new KvasirError("bad_weights", `Cannot load a matrix: ${state}`);
	}
	if (!allFinite(values)) throw new KvasirError("bad_weights", "Cannot load a matrix: a weight is not finite");
	return { outputs, inputs, values };
}

/** The rows of several matrices of the same inputs, one below the other. */
export function stackMatrices(matrices: readonly PlainMatrix[]): PlainMatrix {
	const [first, ...rest] = matrices;
	if (first && rest.length === 0) return first;
	const inputs = first?.inputs ?? 0;
	const outputs = matrices.reduce((sum, matrix) => sum + matrix.outputs, 0);
	const values = new Float32Array(outputs * inputs);
	let start = 0;
	for (const matrix of matrices) {
		values.set(matrix.values, start);
		start += matrix.values.length;
	}
	return { outputs, inputs, values };
}
