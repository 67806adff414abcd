import { readFileSync } from "node:fs";
import { KvasirError } from "../../errors.ts";
import { builtUrl } from "../../io/built.ts";

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
	try {
		return new WebAssembly.Module(readFileSync(url));
	} catch (cause) {
		throw new KvasirError("engine_failed", "Cannot start the canonical engine: its kernel cannot be compiled", {
			hint: "run npm run build; WebAssembly SIMD is needed (any x64 with SSE4.1, any arm64)",
			cause,
		});
	}
}

export function instantiateKernel(module: WebAssembly.Module, memory: WebAssembly.Memory): Kernel {
	const abort = () => {
		throw new KvasirError("internal", "Cannot compute: the kernel aborted");
	};
	const instance = new WebAssembly.Instance(module, { env: { memory, abort } });
	return {
		call: instance.exports as unknown as KernelExports,
		bytes: new Uint8Array(memory.buffer),
		floats: new Float32Array(memory.buffer),
	};
}
