import { builtUrl } from "../../io/built.ts";
import { compileBuiltKernel, instantiateBuiltKernel } from "../built-kernel.ts";

/** What kernel/kernel.ts exports. Pointers and sizes are bytes; a pointer may be above 2^31. */
export interface KernelExports {
	panelBytes(type: number, inputs: number): number;
	pack(
		type: number,
		source: number,
		rowBytes: number,
		inputs: number,
		outputs: number,
		to: number,
		work: number,
	): number;
	quantise(row: number, n: number, record: number, stride: number): number;
	takeQuantised(q: number, scales: number, n: number, record: number, stride: number): number;
	multiply(
		type: number,
		weights: number,
		x: number,
		rows: number,
		inputs: number,
		panels: number,
		y: number,
		yStride: number,
		work: number,
	): void;
	swiglu(g: number, u: number, n: number): number;
	addWeighted(sum: number, y: number, weight: number, n: number): void;
	exponentials(z: number, y: number, n: number): void;
	finite(at: number, n: number): number;
}

/** One memory, as one thread sees it. */
export interface Kernel {
	readonly call: KernelExports;
	readonly bytes: Uint8Array;
	readonly floats: Float32Array;
}

/** Compiles the built kernel. Throws `engine_failed` when it was not built. */
export function compileKernel(): WebAssembly.Module {
	const url = builtUrl(import.meta.url, "./kernel.wasm");
	return compileBuiltKernel(url, "Cannot start the canonical engine: its kernel cannot be compiled");
}

export function instantiateKernel(module: WebAssembly.Module, memory: WebAssembly.Memory): Kernel {
	return {
		call: instantiateBuiltKernel<KernelExports>(module, memory, "Cannot compute: the kernel aborted"),
		bytes: new Uint8Array(memory.buffer),
		floats: new Float32Array(memory.buffer),
	};
}
