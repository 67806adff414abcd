/// <reference types="@webgpu/types" />
import { type Kernel, shapeBytes } from "./pipelines.ts";

/** Scratch buffers of a device by name, grown to what the largest submission needed, and the bind groups made of them. */
export class Scratch {
	readonly #device: GPUDevice;
	readonly #buffers = new Map<string, GPUBuffer>();
	readonly #numbers = new WeakMap<GPUBuffer, number>();
	readonly #groups = new Map<string, GPUBindGroup>();
	#next = 0;

	constructor(device: GPUDevice) {
		this.#device = device;
	}

	get(name: string, bytes: number, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST) {
		const held = this.#buffers.get(name);
		if (held && held.size >= bytes) return held;
		held?.destroy();
		this.#groups.clear();
		const grown = this.#device.createBuffer({ size: Math.ceil((bytes * 1.25 + 16) / 16) * 16, usage });
		this.#buffers.set(name, grown);
		return grown;
	}

	/** Writes an array to the scratch buffer of this name. */
	upload(name: string, values: Float32Array | Uint32Array | Int32Array, usage?: GPUBufferUsageFlags): GPUBuffer {
		const buffer = this.get(name, values.byteLength, usage);
		this.#device.queue.writeBuffer(buffer, 0, values.buffer as ArrayBuffer, values.byteOffset, values.byteLength);
		return buffer;
	}

	/** The bind group of a kernel's shape and buffers; one for each combination, kept until a buffer grows. */
	group(kernel: Kernel, shape: GPUBuffer, buffers: readonly GPUBuffer[]): GPUBindGroup {
		const key = [kernel.layout.label, ...buffers.map((buffer) => this.#numberOf(buffer))].join();
		const known = this.#groups.get(key);
		if (known) return known;
		const bound = [...kernel.access].flatMap((way, index) => (way === "-" ? [] : [index + 1]));
		const made = this.#device.createBindGroup({
			layout: kernel.layout,
			entries: [
				{ binding: 0, resource: { buffer: shape, size: shapeBytes } },
				...buffers.map((buffer, index) => ({ binding: bound[index]!, resource: { buffer } })),
			],
		});
		this.#groups.set(key, made);
		return made;
	}

	/** Drops everything: after an error, a buffer may be one that the device could not make. */
	clear(): void {
		for (const buffer of this.#buffers.values()) buffer.destroy();
		this.#buffers.clear();
		this.#groups.clear();
	}

	#numberOf(buffer: GPUBuffer): number {
		const known = this.#numbers.get(buffer) ?? this.#next++;
		this.#numbers.set(buffer, known);
		return known;
	}
}
