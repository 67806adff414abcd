import type { GpuProvider } from "./choose-adapter.ts";

/** What a device process opens: canonical-1 on an adapter of WebGPU, or onnxruntime's own provider. */
export type DeviceOptions = CanonicalDevice | OnnxDevice;

interface AnyDevice {
	/** How people name it: `webgpu:ID`, `cuda`. */
	readonly id: string;
	/** Most bytes of experts on the device. */
	readonly memoryBytes: number;
}

export interface CanonicalDevice extends AnyDevice {
	readonly engine: "canonical";
	/** An id of listAdapters(). */
	readonly adapter: string;
}

export interface OnnxDevice extends AnyDevice {
	readonly engine: "onnx";
	readonly provider: GpuProvider;
	/** The device's name, for the class. */
	readonly name: string;
	/** Rows are vectors of this many values. */
	readonly hidden: number;
}

/** Device memory for experts where nobody said how much: WebGPU does not tell what a device has. */
export const deviceMemoryBytes = 4 * 2 ** 30;
