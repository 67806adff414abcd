import { KvasirError } from "../errors.ts";
import { sha256 } from "../io/crypto.ts";
import { dequantise } from "./dequantise.ts";
import type { WeightSource } from "./model.ts";
import { randomFloats, randomQ4K } from "./random-weights.ts";
import type { ModelShape } from "./shape.ts";
import { recipeOf } from "./synthetic-recipe.ts";
import { checkExpert, globalTensors, layerTensors, type PlannedTensor } from "./tensor-plan.ts";
import type { WeightMatrix } from "./weight-matrix.ts";
import { Xorshift } from "./xorshift.ts";

/** The tensors of a synthetic model: all that a file of its shape would have. */
export function syntheticTensors(shape: ModelShape): PlannedTensor[] {
	const layers = Array.from({ length: shape.layers }, (_, layer) => layerTensors(shape, layer));
	return [...globalTensors(shape), ...layers.flat()];
}

/**
 * Random weights, the same on every machine: each tensor from a xorshift seeded by the SHA-256 of its name, each routed
 * expert by that of its tensor's name and its number, so that an expert nobody asks for costs nothing.
 */
export function syntheticWeights(shape: ModelShape): WeightSource {
	const tensors = new Map(syntheticTensors(shape).map((tensor) => [tensor.name, tensor]));
	/** Rows of the embedding are asked for one by one, so it is made once. */
	const made = new Map<string, WeightMatrix>();

	const tensorOf = (name: string): PlannedTensor => {
		const tensor = tensors.get(name);
		if (tensor !== undefined) return tensor;
		throw new KvasirError("bad_gguf", `Cannot make weights: the synthetic model has no tensor ${name}`);
	};

	/** Made when its bytes are read: who announces experts before they are asked for pays nothing. */
	const expertMatrix = (layer: number, kind: string, expert: number): WeightMatrix => {
		const { name, ne } = tensorOf(`blk.${layer}.ffn_${kind}_exps.weight`);
		const [inputs, outputs] = ne as [number, number];
		let made: Uint8Array | null = null;
		return {
			...{ type: "Q4_K", inputs, outputs },
			get bytes() {
				made ??= makeMatrix({ name, ne: [inputs, outputs] }, `${name}[${expert}]`).bytes;
				return made;
			},
		};
	};

	return {
		has: (name) => tensors.has(name),

		async matrix(name) {
			return makeMatrix(tensorOf(name), name);
		},

		async matrixRows(name, first, count) {
			const whole = made.get(name) ?? makeMatrix(tensorOf(name), name);
			if (name === "token_embd.weight") made.set(name, whole);
			if (first < 0 || count < 1 || first + count > whole.outputs) {
				throw new KvasirError("internal", `Cannot make rows ${first} to ${first + count} of ${name}`);
			}
			const rowBytes = whole.bytes.length / whole.outputs;
			return { ...whole, outputs: count, bytes: whole.bytes.slice(first * rowBytes, (first + count) * rowBytes) };
		},

		async floats(name) {
			const tensor = tensorOf(name);
			if (recipeOf(tensor).small) return makeFloats(tensor);
			const { bytes, type } = makeMatrix(tensor, name);
			return dequantise(bytes, type);
		},

		async expert(layer, expert) {
			checkExpert(shape, layer, expert);
			const make = (kind: string) => expertMatrix(layer, kind, expert);
			return { gate: make("gate"), up: make("up"), down: make("down") };
		},

		expertTypes: () => ({ gate: "Q4_K", up: "Q4_K" }),

		async sharedExpert(layer) {
			const make = (kind: string) => {
				const tensor = tensorOf(`blk.${layer}.ffn_${kind}_shexp.weight`);
				return makeMatrix(tensor, tensor.name);
			};
			return { gate: make("gate"), up: make("up"), down: make("down") };
		},

		async close() {
			made.clear();
		},
	};
}

/** @param seedName whose SHA-256 seeds the weights */
function makeMatrix(tensor: PlannedTensor, seedName: string): WeightMatrix {
	const [inputs, outputs = 1, ...more] = tensor.ne;
	if (inputs === undefined || more.length > 0) {
		throw new KvasirError("bad_gguf", `Cannot make weights: ${tensor.name} is not a matrix`);
	}
	if (recipeOf(tensor).small) {
		return { type: "F32", outputs, inputs, bytes: new Uint8Array(makeFloats(tensor).buffer) };
	}
	const random = randomNamed(seedName);
	return { type: "Q4_K", outputs, inputs, bytes: randomQ4K(random, inputs * outputs, recipeOf(tensor).deviation) };
}

function makeFloats(tensor: PlannedTensor): Float32Array {
	const { mean, deviation } = recipeOf(tensor);
	const count = tensor.ne.reduce((product, dimension) => product * dimension, 1);
	return randomFloats(randomNamed(tensor.name), count, mean, deviation);
}

function randomNamed(name: string): Xorshift {
	return new Xorshift(sha256(new TextEncoder().encode(name)));
}
