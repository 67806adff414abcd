import { KvasirError } from "../../errors.ts";
import { matrixGraph } from "../../model/onnx/matrix-graph.ts";
import type { WeightMatrix } from "../../model/weight-matrix.ts";
import type { MatrixEngine, MatrixGroup } from "../matrices.ts";
import { type InferenceSession, type MakeTensor, openSession, tensorConstructor } from "../onnxruntime.ts";
import { plainMatrix, stackMatrices } from "./plain-matrix.ts";

/** Dense matrices of engine f32: weights widened to f32, one onnxruntime session a group, all its matrices as one. */
export async function openF32Matrices({ threads = 1 }: { threads?: number } = {}): Promise<MatrixEngine> {
	const Tensor = await tensorConstructor();
	return {
		engineClass: "f32",
		async group(name: string, matrices: readonly WeightMatrix[]): Promise<MatrixGroup> {
			const inputs = matrices[0]!.inputs;
			if (matrices.some((matrix) => matrix.inputs !== inputs)) {
				throw new KvasirError("unsupported_shape", `Cannot load ${name}: its matrices read rows of different widths`);
			}
			const session = await openSession(matrixGraph(stackMatrices(matrices.map(plainMatrix))), { threads });
			return new F32Group(
				session,
				Tensor,
				inputs,
				matrices.map(({ outputs }) => outputs),
			);
		},
	};
}

class F32Group implements MatrixGroup {
	readonly #session: InferenceSession;
	readonly #Tensor: MakeTensor;
	readonly #inputs: number;
	readonly #widths: readonly number[];

	constructor(session: InferenceSession, Tensor: MakeTensor, inputs: number, widths: readonly number[]) {
		this.#session = session;
		this.#Tensor = Tensor;
		this.#inputs = inputs;
		this.#widths = widths;
	}

	async multiply(rows: Float32Array, rowCount: number): Promise<Float32Array[]> {
		const x = new this.#Tensor("float32", rows.subarray(0, rowCount * this.#inputs), [rowCount, this.#inputs]);
		const { y } = await this.#session.run({ x });
		return splitColumns(y!.data as Float32Array, rowCount, this.#widths);
	}

	async close(): Promise<void> {
		await this.#session.release();
	}
}

/** Cuts rows of joined outputs into one array per matrix; views, not copies, where one row or one matrix allows it. */
function splitColumns(joined: Float32Array, rowCount: number, widths: readonly number[]): Float32Array[] {
	if (widths.length === 1) return [joined];
	const total = joined.length / rowCount;
	let column = 0;
	return widths.map((width) => {
		const start = column;
		column += width;
		if (rowCount === 1) return joined.subarray(start, start + width);
		const part = new Float32Array(rowCount * width);
		for (let row = 0; row < rowCount; row++) {
			part.set(joined.subarray(row * total + start, row * total + start + width), row * width);
		}
		return part;
	});
}
