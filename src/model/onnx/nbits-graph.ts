import { encodeModel, int64Constant, type OnnxConstant, type OnnxModel, type OnnxNode } from "./onnx-model.ts";

/**
 * A matrix whose weights are `scale * (q - zero) + offset` in blocks of `blockSize` along a row, exactly: zero is 8 for 4 bits, 128 for 8.
 * onnxruntime's own zero points are integers (or slow); the offset is a correction instead, `offsets x sum of each block of x`.
 */
export interface NBitsMatrix {
	readonly outputs: number;
	readonly inputs: number;
	readonly bits: 4 | 8;
	readonly blockSize: 16 | 32;
	/** (outputs, inputs / blockSize, blockSize * bits / 8); of two 4-bit weights the first is in the low nibble */
	readonly packed: Uint8Array;
	/** (outputs, inputs / blockSize) */
	readonly scales: Float32Array;
	/** (inputs / blockSize, outputs); absent where every offset is 0 */
	readonly offsets?: Float32Array;
}

/** A matrix as it is: (outputs, inputs). */
export interface FloatMatrix {
	readonly outputs: number;
	readonly inputs: number;
	readonly values: Float32Array;
}

export type AnyMatrix = NBitsMatrix | FloatMatrix;

/** 0: products at fp32 accuracy; 4: activations rounded to int8 per block. */
export type AccuracyLevel = 0 | 4;

/** One expert, `Wdown (silu(Wgate x) * (Wup x))`: `x` (rows, hidden) -> `y` (rows, hidden). */
export function nBitsExpertGraph(gate: AnyMatrix, up: AnyMatrix, down: AnyMatrix, level: AccuracyLevel): OnnxModel {
	const products = [product("gate", gate, "x", "g", level), product("up", up, "x", "u", level)];
	products.push(product("down", down, "h", "y", level));
	const swiglu: OnnxNode[] = [
		{ op: "Sigmoid", inputs: ["g"], outputs: ["sigmoid"] },
		{ op: "Mul", inputs: ["g", "sigmoid"], outputs: ["silu"] },
		{ op: "Mul", inputs: ["silu", "u"], outputs: ["h"] },
	];
	const [g, u, d] = products as [Product, Product, Product];
	return encodeModel({
		nodes: [...g.nodes, ...u.nodes, ...swiglu, ...d.nodes],
		inputs: [{ name: "x", type: "float", dims: ["rows", gate.inputs] }],
		outputs: [{ name: "y", type: "float", dims: ["rows", down.outputs] }],
		constants: products.flatMap(({ constants }) => constants),
	});
}

/** One matrix: `x` (rows, inputs) -> `y` (rows, outputs). */
export function nBitsMatrixGraph(matrix: AnyMatrix, level: AccuracyLevel): OnnxModel {
	const { nodes, constants } = product("w", matrix, "x", "y", level);
	return encodeModel({
		nodes,
		inputs: [{ name: "x", type: "float", dims: ["rows", matrix.inputs] }],
		outputs: [{ name: "y", type: "float", dims: ["rows", matrix.outputs] }],
		constants,
	});
}

interface Product {
	readonly nodes: readonly OnnxNode[];
	readonly constants: readonly OnnxConstant[];
}

function product(name: string, matrix: AnyMatrix, x: string, y: string, level: AccuracyLevel): Product {
	if ("values" in matrix) {
		const { outputs, inputs, values } = matrix;
		return {
			nodes: [{ op: "Gemm", inputs: [x, name], outputs: [y], attributes: { transB: { int: 1 } } }],
			constants: [{ name, type: "float", dims: [outputs, inputs], data: values, external: true }],
		};
	}
	return nBitsProduct(name, matrix, x, y, level);
}

function nBitsProduct(name: string, matrix: NBitsMatrix, x: string, y: string, level: AccuracyLevel): Product {
	const { outputs, inputs, bits, blockSize, packed, scales, offsets } = matrix;
	const blocks = inputs / blockSize;
	const named = (part: string) => `${name}.${part}`;
	const multiply: OnnxNode = {
		op: "MatMulNBits",
		domain: "com.microsoft",
		inputs: [x, named("packed"), named("scales")],
		outputs: [offsets ? named("product") : y],
		attributes: {
			K: { int: inputs },
			N: { int: outputs },
			bits: { int: bits },
			block_size: { int: blockSize },
			accuracy_level: { int: level },
		},
	};
	const weights: OnnxConstant[] = [
		{
			name: named("packed"),
			type: "uint8",
			dims: [outputs, blocks, packed.length / (outputs * blocks)],
			data: packed,
			external: true,
		},
		{ name: named("scales"), type: "float", dims: [outputs * blocks], data: scales, external: true },
	];
	if (!offsets) return { nodes: [multiply], constants: weights };
	return {
		nodes: [
			multiply,
			{ op: "Reshape", inputs: [x, named("shape")], outputs: [named("blocks")] },
			{
				op: "ReduceSum",
				inputs: [named("blocks"), named("axis")],
				outputs: [named("sums")],
				attributes: { keepdims: { int: 0 } },
			},
			{ op: "MatMul", inputs: [named("sums"), named("offsets")], outputs: [named("correction")] },
			{ op: "Add", inputs: [named("product"), named("correction")], outputs: [y] },
		],
		constants: [
			...weights,
			int64Constant(named("shape"), [0, blocks, blockSize]),
			int64Constant(named("axis"), [2]),
			{ name: named("offsets"), type: "float", dims: [blocks, outputs], data: offsets, external: true },
		],
	};
}
