/// <reference types="@webgpu/types" />
import type { TensorType } from "../../model/weight-matrix.ts";
import { dotWgsl, isBlockType } from "./wgsl-dot.ts";
import { exponentialsWgsl, rowsWgsl, sumWgsl } from "./wgsl-rows.ts";

/** Bytes of the shape that every shader reads at binding 0. */
export const shapeBytes = 32;

/** A compiled shader and what it binds after its shape: `r` read only, `w` written, `-` nothing at this number. */
export interface Kernel {
	readonly pipeline: GPUComputePipeline;
	readonly layout: GPUBindGroupLayout;
	readonly access: string;
}

/** The shaders of a device, each compiled at its first use. */
export class Pipelines {
	readonly #device: GPUDevice;
	readonly #packedDot: boolean;
	readonly #made = new Map<string, Kernel>();

	/** @param packedDot whether the shader language of this device has packed dot products */
	constructor(device: GPUDevice, packedDot: boolean) {
		this.#device = device;
		this.#packedDot = packedDot;
	}

	/** Rows times matrices of a type: weights, plan, outputs, flags, then packed, sums, scales of the rows, or their plain values. */
	dot(type: TensorType): Kernel {
		const access = isBlockType(type) ? "rrwwrrr" : "rrwwr";
		return this.#get(type, () => dotWgsl(type, this.#packedDot), "multiply", access);
	}

	/** Source, -, packed, sums, scales, flags. */
	get quantise(): Kernel {
		return this.#get("quantise", () => rowsWgsl, "quantise", "r-wwww");
	}

	/** g and u stacked, values, packed, sums, scales, flags. */
	get activate(): Kernel {
		return this.#get("activate", () => rowsWgsl, "activate", "rwwwww");
	}

	/** Vectors, plan, sums, flags. */
	get sumRows(): Kernel {
		return this.#get("sum_rows", () => sumWgsl, "sum_rows", "rrww");
	}

	/** Source, result. */
	get exponentials(): Kernel {
		return this.#get("exponentials", () => exponentialsWgsl, "exponentials", "rw");
	}

	#get(key: string, code: () => string, entryPoint: string, access: string): Kernel {
		const known = this.#made.get(key);
		if (known) return known;
		const module = this.#device.createShaderModule({ code: code() });
		const layout = this.#device.createBindGroupLayout({ label: key, entries: layoutEntries(access) });
		const pipeline = this.#device.createComputePipeline({
			layout: this.#device.createPipelineLayout({ bindGroupLayouts: [layout] }),
			compute: { module, entryPoint },
		});
		const made = { pipeline, layout, access };
		this.#made.set(key, made);
		return made;
	}
}

function layoutEntries(access: string): GPUBindGroupLayoutEntry[] {
	const visibility = GPUShaderStage.COMPUTE;
	const shape = { type: "uniform", hasDynamicOffset: true, minBindingSize: shapeBytes } as const;
	const buffers = [...access].flatMap((way, index): GPUBindGroupLayoutEntry[] => {
		if (way === "-") return [];
		const type = way === "r" ? "read-only-storage" : "storage";
		return [{ binding: index + 1, visibility, buffer: { type } }];
	});
	return [{ binding: 0, visibility, buffer: shape }, ...buffers];
}
