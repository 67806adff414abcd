import { encodeModel, type OnnxModel } from "./onnx-model.ts";

/** A matrix widened to f32: `outputs` rows of `inputs` weights. */
export interface PlainMatrix {
	readonly outputs: number;
	readonly inputs: number;
	readonly values: Float32Array;
}

/**
 * One matrix (or several stacked): `x` (rows, inputs) -> `y` (rows, outputs).
 * The weights are constants, so onnxruntime prepacks them and a row's result does not depend on the other rows.
 */
export function matrixGraph(matrix: PlainMatrix): OnnxModel {
	return encodeModel({
		nodes: [rowsTimesMatrix("x", "w", "y")],
		inputs: [{ name: "x", type: "float", dims: ["rows", matrix.inputs] }],
		outputs: [{ name: "y", type: "float", dims: ["rows", matrix.outputs] }],
		constants: [weightConstant("w", matrix)],
	});
}

/** One expert, `Wdown (silu(Wgate x) * (Wup x))`: `x` (rows, hidden) -> `y` (rows, hidden). */
export function expertGraph(gate: PlainMatrix, up: PlainMatrix, down: PlainMatrix): OnnxModel {
	return encodeModel({
		nodes: [
			rowsTimesMatrix("x", "gate", "g"),
			rowsTimesMatrix("x", "up", "u"),
			{
				op: "QuickGelu", // x * sigmoid(alpha * x): silu for alpha 1
				domain: "com.microsoft",
				inputs: ["g"],
				outputs: ["s"],
				attributes: { alpha: { float: 1 } },
			},
			{ op: "Mul", inputs: ["s", "u"], outputs: ["h"] },
			rowsTimesMatrix("h", "down", "y"),
		],
		inputs: [{ name: "x", type: "float", dims: ["rows", gate.inputs] }],
		outputs: [{ name: "y", type: "float", dims: ["rows", down.outputs] }],
		constants: [weightConstant("gate", gate), weightConstant("up", up), weightConstant("down", down)],
	});
}

function rowsTimesMatrix(rows: string, matrix: string, result: string) {
	return { op: "Gemm", inputs: [rows, matrix], outputs: [result], attributes: { transB: { int: 1 } } };
}

function weightConstant(name: string, { outputs, inputs, values }: PlainMatrix) {
	return { name, type: "float", dims: [outputs, inputs], data: values, external: true } as const;
}
