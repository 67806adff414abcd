import { KvasirError } from "../errors.ts";
import { dequantise } from "./dequantise.ts";
import { rowBytesOf, tensorTypeOf, typeNameOf } from "./ggml-types.ts";
import type { Gguf } from "./gguf.ts";
import type { TensorInfo } from "./gguf-header.ts";
import type { WeightSource } from "./model.ts";
import type { ModelShape } from "./shape.ts";
import { checkExpert } from "./tensor-plan.ts";
import type { ExpertWeights, TensorType, WeightMatrix } from "./weight-matrix.ts";

/** The weights of an open GGUF model whose tensors were checked against `shape`; each call is a ranged read. */
export function ggufWeights(gguf: Gguf, shape: ModelShape): WeightSource {
	const tensorOf = (name: string): TensorInfo => {
		const tensor = gguf.tensors.get(name);
		if (tensor !== undefined) return tensor;
		throw new KvasirError("bad_gguf", `Cannot read ${gguf.path}: tensor ${name} is missing`, {
			facts: { tensor: name },
		});
	};

	/** Rows of a tensor, counted over all its dimensions but the first. */
	const rowsOf = async (tensor: TensorInfo, first: number, count: number): Promise<WeightMatrix> => {
		const type = typeOf(tensor);
		const inputs = tensor.ne[0]!;
		const rowBytes = rowBytesOf(type, inputs);
		const bytes = await gguf.read(tensor, first * rowBytes, count * rowBytes);
		return { type, outputs: count, inputs, bytes };
	};

	const matrix = async (name: string): Promise<WeightMatrix> => {
		const tensor = tensorOf(name);
		if (tensor.ne.slice(2).every((dimension) => dimension === 1)) return rowsOf(tensor, 0, tensor.ne[1] ?? 1);
		const state = `tensor ${name} is ${tensor.ne.join(" x ")}, not a matrix`;
		throw new KvasirError("bad_gguf", `Cannot read ${gguf.path}: ${state}`);
	};

	/** Fused or not: the tensors that hold a layer's gate and up rows. */
	const gateAndUp = (layer: number) => {
		const prefix = `blk.${layer}.ffn_`;
		const fused = gguf.tensors.get(`${prefix}gate_up_exps.weight`);
		return {
			fused: fused !== undefined,
			gateTensor: fused ?? tensorOf(`${prefix}gate_exps.weight`),
			upTensor: fused ?? tensorOf(`${prefix}up_exps.weight`),
		};
	};

	/** Gate, up and down of one expert, from three places of the file. */
	const expertOf = async (layer: number, expert: number): Promise<ExpertWeights> => {
		checkExpert(shape, layer, expert);
		const { hidden, expertWidth } = shape;
		const downTensor = tensorOf(`blk.${layer}.ffn_down_exps.weight`);
		const { fused, gateTensor, upTensor } = gateAndUp(layer);
		// Fused: an expert's gate rows, then its up rows.
		const [stride, upStart] = fused ? [2 * expertWidth, expertWidth] : [expertWidth, 0];
		const [gate, up, down] = await Promise.all([
			rowsOf(gateTensor, expert * stride, expertWidth),
			rowsOf(upTensor, expert * stride + upStart, expertWidth),
			rowsOf(downTensor, expert * hidden, hidden),
		]);
		return { gate, up, down };
	};

	return {
		has: (name) => gguf.tensors.has(name),
		matrix,
		async matrixRows(name, first, count) {
			const tensor = tensorOf(name);
			const rows = tensor.ne[1] ?? 1;
			if (first >= 0 && count >= 1 && first + count <= rows) return rowsOf(tensor, first, count);
			throw new KvasirError("internal", `Cannot read rows ${first} to ${first + count} of ${name}: it has ${rows}`);
		},
		async floats(name) {
			const tensor = tensorOf(name);
			return dequantise(await gguf.read(tensor, 0, tensor.bytes), typeOf(tensor));
		},
		expert: expertOf,
		expertTypes(layer) {
			const { gateTensor, upTensor } = gateAndUp(layer);
			return { gate: typeOf(gateTensor), up: typeOf(upTensor) };
		},
		async sharedExpert(layer) {
			const shared = (kind: string) => matrix(`blk.${layer}.ffn_${kind}_shexp.weight`);
			const [gate, up, down] = await Promise.all([shared("gate"), shared("up"), shared("down")]);
			return { gate, up, down };
		},
		close: () => gguf.close(),
	};
}

function typeOf(tensor: TensorInfo): TensorType {
	const type = tensorTypeOf(tensor.ggmlType);
	if (type !== undefined) return type;
	const state = `tensor ${tensor.name} is of type ${typeNameOf(tensor.ggmlType)}`;
	throw new KvasirError("unsupported_type", `Cannot read weights: ${state}`, { facts: { tensor: tensor.name } });
}
