import { compileBuiltKernel, instantiateBuiltKernel } from "../../experts/built-kernel.ts";
import { builtUrl } from "../../io/built.ts";

type Float64Function = (x: number) => number;

/** What mixer-kernel/kernel.ts exports; its files say what each does. Pointers are bytes, and may be above 2^31. */
export interface MixerExports {
	finite(at: number, n: number): number;
	convolve(table: number, spans: number, mix: number, y: number, weights: number, channels: number, taps: number): void;
	normaliseKeys(y: number, rows: number, channels: number, keyHeads: number, d: number): void;
	openGates(
		a: number,
		b: number,
		decay: number,
		timeStep: number,
		rows: number,
		heads: number,
		keep: number,
		beta: number,
	): void;
	deltaRule(
		table: number,
		spans: number,
		y: number,
		keep: number,
		beta: number,
		state: number,
		keyHeads: number,
		valueHeads: number,
		d: number,
		read: number,
	): void;
	gatedNorm(read: number, z: number, weight: number, heads: number, d: number, epsilon: number): void;
	rotations(table: number, spans: number, theta: number, rotaryDims: number, frequencies: number, turns: number): void;
	remember(
		table: number,
		spans: number,
		k: number,
		v: number,
		norm: number,
		epsilon: number,
		turns: number,
		pairs: number,
		kvHeads: number,
		d: number,
	): void;
	prepareQueries(
		queries: number,
		rows: number,
		norm: number,
		epsilon: number,
		turns: number,
		pairs: number,
		heads: number,
		d: number,
		q: number,
	): void;
	attend(
		table: number,
		spans: number,
		q: number,
		heads: number,
		kvHeads: number,
		d: number,
		sums: number,
		read: number,
		scores: number,
	): void;
	finishRead(read: number, sums: number, queries: number, heads: number, d: number): void;
	readonly exponential: Float64Function;
	readonly logarithm: Float64Function;
	readonly sine: Float64Function;
	readonly cosine: Float64Function;
	readonly sigmoid: Float64Function;
	readonly softplus: Float64Function;
	power(base: number, exponent: number): number;
}

/** Compiles the built kernel of the mixers. Throws `engine_failed` when it was not built. */
export function compileMixers(): WebAssembly.Module {
	const url = builtUrl(import.meta.url, "./mixer-kernel.wasm");
	return compileBuiltKernel(url, "Cannot decode: the kernel of the mixers cannot be compiled");
}

export function instantiateMixers(module: WebAssembly.Module, memory: WebAssembly.Memory): MixerExports {
	return instantiateBuiltKernel(module, memory, "Cannot decode: the kernel of the mixers aborted");
}
