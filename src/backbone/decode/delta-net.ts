import type { MatrixEngine } from "../../experts/matrices.ts";
import type { Model } from "../../model/model.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { Mixer, MixerSpan } from "./mixer.ts";
import { copyIn, copyOut, forEachCall, layOutWork, type MixerCall } from "./mixer-calls.ts";
import { loadProjections, type Projections } from "./projections.ts";
import type { TextMemory } from "./text-memory.ts";

/** What a layer remembers of a text: the last rows before the convolution (K-1, C), then one state (d, d) per value head. */
export function deltaNetBytes({ deltaNet }: ModelShape): { readonly rows: number; readonly states: number } {
	const { valueHeads, headDim, convKernel } = deltaNet;
	return { rows: 4 * (convKernel - 1) * channelsOf(deltaNet), states: 4 * valueHeads * headDim ** 2 };
}

/** The work space of a kernel call. */
export function deltaNetWork({ deltaNet }: ModelShape) {
	const { valueHeads, headDim } = deltaNet;
	const [channels, width] = [channelsOf(deltaNet), valueHeads * headDim];
	return layOutWork(0, {
		mix: channels,
		y: channels,
		z: width,
		read: width,
		b: valueHeads,
		a: valueHeads,
		keep: valueHeads,
		beta: valueHeads,
	});
}

function channelsOf({ keyHeads, valueHeads, headDim }: ModelShape["deltaNet"]): number {
	return (2 * keyHeads + valueHeads) * headDim;
}

/** Loads the gated delta net of one layer (qwen35moe.md section 3). */
export async function loadDeltaNet(
	model: Model,
	layer: number,
	matrices: MatrixEngine,
	memory: TextMemory,
): Promise<Mixer> {
	const { weights, shape } = model;
	const name = (tensor: string) => `blk.${layer}.${tensor}`;
	const constant = async (tensor: string) => memory.addConstant(await weights.floats(name(tensor)));
	const conv = await weights.floats(name("ssm_conv1d.weight"));
	const constants = {
		conv: memory.addConstant(transposed(conv, shape.deltaNet.convKernel)),
		decay: await constant("ssm_a"),
		timeStep: await constant("ssm_dt.bias"),
		norm: await constant("ssm_norm.weight"),
	};
	const projections = await loadProjections(model, layer, matrices, {
		into: ["attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha"],
		out: "ssm_out",
	});
	return new DeltaNet(shape, layer, constants, projections);
}

/** (n, columns) -> (columns, n) */
function transposed(values: Float32Array, columns: number): Float32Array {
	const rows = values.length / columns;
	return values.map((_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);
}

/** Addresses of a layer's small weights, in every memory. */
interface Constants {
	/** (K, C) */
	readonly conv: number;
	/** (Nv) */
	readonly decay: number;
	/** (Nv) */
	readonly timeStep: number;
	/** (d) */
	readonly norm: number;
}

class DeltaNet implements Mixer {
	readonly projections: Projections;
	readonly width: number;
	readonly #shape: ModelShape;
	readonly #layer: number;
	readonly #constants: Constants;
	readonly #work: ReturnType<typeof deltaNetWork>;

	constructor(shape: ModelShape, layer: number, constants: Constants, projections: Projections) {
		this.#shape = shape;
		this.#layer = layer;
		this.#constants = constants;
		this.#work = deltaNetWork(shape);
		this.projections = projections;
		this.width = shape.deltaNet.valueHeads * shape.deltaNet.headDim;
	}

	mix(projected: readonly Float32Array[], spans: readonly MixerSpan[], mixed: Float32Array): void {
		const { at } = this.#work;
		const { valueHeads } = this.#shape.deltaNet;
		forEachCall(spans, this.#layer, this.#work, (call) => {
			copyIn(call, projected[0]!, channelsOf(this.#shape.deltaNet), at.mix);
			copyIn(call, projected[1]!, this.width, at.z);
			copyIn(call, projected[2]!, valueHeads, at.b);
			copyIn(call, projected[3]!, valueHeads, at.a);
			this.#compute(call);
			copyOut(call, at.read, mixed, this.width);
		});
	}

	#compute({ memory: { call }, spans, rows }: MixerCall): void {
		const { at, table } = this.#work;
		const { conv, decay, timeStep, norm } = this.#constants;
		const { keyHeads, valueHeads, headDim, convKernel } = this.#shape.deltaNet;
		const channels = channelsOf(this.#shape.deltaNet);
		const states = deltaNetBytes(this.#shape).rows;
		call.convolve(table, spans, at.mix, at.y, conv, channels, convKernel);
		call.normaliseKeys(at.y, rows, channels, keyHeads, headDim);
		call.openGates(at.a, at.b, decay, timeStep, rows, valueHeads, at.keep, at.beta);
		call.deltaRule(table, spans, at.y, at.keep, at.beta, states, keyHeads, valueHeads, headDim, at.read);
		call.gatedNorm(at.read, at.z, norm, rows * valueHeads, headDim, this.#shape.rmsEpsilon);
	}
}
