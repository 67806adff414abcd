/// <reference types="@webgpu/types" />
import type { TensorType } from "../../model/weight-matrix.ts";
import { dotWgsl } from "./wgsl-dot.ts";
import { rowsWgsl, sumWgsl } from "./wgsl-rows.ts";

/** The compiled shaders of a device, each made at its first use. */
export class Pipelines {
	readonly #device: GPUDevice;
	readonly #packedDot: boolean;
	readonly #made = new Map<string, GPUComputePipeline>();

	constructor(device: GPUDevice, packedDot: boolean) {
		this.#device = device;
		this.#packedDot = packedDot;
	}

	dot(type: TensorType): GPUComputePipeline {
		return this.#get(`dot ${type}`, () => dotWgsl(type, this.#packedDot), "multiply");
	}

	step(name: "quantise" | "activate" | "sum_rows"): GPUComputePipeline {
		return this.#get(name, () => (name === "sum_rows" ? sumWgsl : rowsWgsl), name);
	}

	#get(key: string, code: () => string, entryPoint: string): GPUComputePipeline {
		const known = this.#made.get(key);
		if (known) return known;
		const module = this.#device.createShaderModule({ code: code() });
		const made = this.#device.createComputePipeline({ layout: "auto", compute: { module, entryPoint } });
		this.#made.set(key, made);
		return made;
	}
}
