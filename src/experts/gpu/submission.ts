/// <reference types="@webgpu/types" />

import type { Rows } from "../engine.ts";
import { packBlocks } from "./pack-blocks.ts";
import type { Pipelines } from "./pipelines.ts";
import { type Pass, type Product, planPasses } from "./plan.ts";
import { isBlockType, outputsPerGroup } from "./wgsl-dot.ts";

/** Scratch buffers of the device by name, grown to what the largest submission needed. */
export class Scratch {
	readonly #device: GPUDevice;
	readonly #buffers = new Map<string, GPUBuffer>();

	constructor(device: GPUDevice) {
		this.#device = device;
	}

	get(name: string, bytes: number, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST) {
		const size = Math.max(16, Math.ceil(bytes / 4) * 4);
		const held = this.#buffers.get(name);
		if (held && held.size >= size) return held;
		held?.destroy();
		const grown = this.#device.createBuffer({ size: Math.ceil((size * 1.25) / 16) * 16, usage });
		this.#buffers.set(name, grown);
		return grown;
	}
}

/** Activation rows on the device: plain, and cut into activation blocks (wgsl-rows.ts). */
export interface DeviceRows {
	readonly width: number;
	readonly rows: number;
	readonly values: GPUBuffer;
	readonly packed: GPUBuffer;
	readonly sums: GPUBuffer;
	readonly scales: GPUBuffer;
}

/** One command buffer being written: every step of a batch in order, submitted at once. */
export class Submission {
	readonly #device: GPUDevice;
	readonly #pipelines: Pipelines;
	readonly #scratch: Scratch;
	readonly #encoder: GPUCommandEncoder;
	readonly flags: GPUBuffer;

	constructor(device: GPUDevice, pipelines: Pipelines, scratch: Scratch) {
		this.#device = device;
		this.#pipelines = pipelines;
		this.#scratch = scratch;
		this.#encoder = device.createCommandEncoder();
		this.flags = scratch.get("flags", 8);
		device.queue.writeBuffer(this.flags, 0, new Uint32Array(2));
	}

	/** Rows from the host. */
	upload(name: string, values: Float32Array | Uint32Array | Int32Array, usage?: GPUBufferUsageFlags): GPUBuffer {
		const buffer = this.#scratch.get(name, values.byteLength, usage);
		this.#device.queue.writeBuffer(buffer, 0, values.buffer as ArrayBuffer, values.byteOffset, values.byteLength);
		return buffer;
	}

	/** Room for activation rows. */
	rows(name: string, width: number, rows: number): DeviceRows {
		const blocks = rows * Math.ceil(width / 256);
		return {
			width,
			rows,
			values: this.#scratch.get(`${name}.values`, rows * width * 4),
			packed: this.#scratch.get(`${name}.packed`, blocks * 512),
			sums: this.#scratch.get(`${name}.sums`, blocks * 64),
			scales: this.#scratch.get(`${name}.scales`, blocks * 4),
		};
	}

	/** Rows of the host, `count` of them from row `first` on: plain ones are cut into blocks here, blocks only change their layout. */
	enter(name: string, rows: Rows, width: number, first: number, count: number): DeviceRows {
		const entered = this.rows(name, width, count);
		if (rows.dtype === "f32") {
			this.upload(`${name}.values`, rows.values.subarray(first * width, (first + count) * width));
			this.fill("quantise", entered, entered.values);
		} else {
			const { packed, sums, scales } = packBlocks(rows, width, first, count);
			this.upload(`${name}.packed`, packed);
			this.upload(`${name}.sums`, sums);
			this.upload(`${name}.scales`, scales);
		}
		return entered;
	}

	/** Fills `rows` from `source`: as they came (`quantise`), or as silu(g) * u of stacked g and u (`activate`). */
	fill(step: "quantise" | "activate", rows: DeviceRows, source: GPUBuffer): void {
		const blocks = Math.ceil(rows.width / 256);
		const shape = new Uint32Array([rows.width, rows.rows, blocks, 0]);
		const { values, packed, sums, scales } = rows;
		// A shader binds just what it uses, and only activate writes values.
		const written = step === "activate" ? values : null;
		this.#run(
			this.#pipelines.step(step),
			shape,
			[source, written, packed, sums, scales, this.flags],
			[blocks, rows.rows],
		);
	}

	/** Multiplies; products go to row `to` of `outputs`, whose row 0 is at word `base`. */
	multiply(name: string, products: readonly Product[], rows: DeviceRows, outputs: GPUBuffer, base: number): void {
		const table: number[] = [];
		const passes = planPasses(products, table);
		const plan = this.upload(`${name}.plan`, Uint32Array.from(table));
		for (const pass of passes) this.#multiplyPass(pass, plan, rows, outputs, base);
	}

	/** Mode 1: `summed` (rows, width) of `vectors`; the pairs of row r are first[r] .. first[r + 1]. */
	sumRows(vectors: GPUBuffer, width: number, first: Uint32Array, weight: Float32Array): GPUBuffer {
		const rows = first.length - 1;
		const summed = this.#scratch.get("summed", rows * width * 4);
		const bound = [vectors, this.upload("sum.first", first), this.upload("sum.weight", weight), summed, this.flags];
		const shape = new Uint32Array([width, rows, 0, 0]);
		this.#run(this.#pipelines.step("sum_rows"), shape, bound, [Math.ceil(width / 64), rows]);
		return summed;
	}

	/** Submits, waits, and gives back the result's words and the two flags (a row, a result that is not finite). */
	async finish(result: GPUBuffer, words: number): Promise<{ values: Float32Array; flags: Uint32Array }> {
		const bytes = words * 4;
		const flagsAt = Math.ceil(bytes / 8) * 8;
		const staging = this.#scratch.get("staging", flagsAt + 8, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
		this.#encoder.copyBufferToBuffer(result, 0, staging, 0, bytes);
		this.#encoder.copyBufferToBuffer(this.flags, 0, staging, flagsAt, 8);
		this.#device.queue.submit([this.#encoder.finish()]);
		await staging.mapAsync(GPUMapMode.READ, 0, flagsAt + 8);
		const values = new Float32Array(staging.getMappedRange(0, bytes).slice(0));
		const flags = new Uint32Array(staging.getMappedRange(flagsAt, 8).slice(0));
		staging.unmap();
		return { values, flags };
	}

	#multiplyPass(pass: Pass, plan: GPUBuffer, rows: DeviceRows, outputs: GPUBuffer, base: number): void {
		const { type, inputs, jobs, jobCount } = pass;
		const block = isBlockType(type);
		const blocks = block ? inputs / (type === "Q8_0" ? 32 : 256) : 0;
		const shape = new Uint32Array([pass.outputs, inputs, blocks, Math.ceil(inputs / 256), jobs, base, 0, 0]);
		const read = block ? [rows.packed, rows.sums, rows.scales] : [rows.values];
		const perGroup = block ? outputsPerGroup.block : outputsPerGroup.float;
		const bound = [pass.chunk.buffer, plan, outputs, this.flags, ...read];
		this.#run(this.#pipelines.dot(type), shape, bound, [Math.ceil(pass.outputs / perGroup), jobCount]);
	}

	#run(
		pipeline: GPUComputePipeline,
		shape: Uint32Array,
		buffers: readonly (GPUBuffer | null)[],
		groups: [number, number],
	): void {
		const uniform = this.#device.createBuffer({
			size: shape.byteLength,
			usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
		});
		this.#device.queue.writeBuffer(uniform, 0, shape.buffer as ArrayBuffer);
		const pass = this.#encoder.beginComputePass();
		pass.setPipeline(pipeline);
		pass.setBindGroup(
			0,
			this.#device.createBindGroup({
				layout: pipeline.getBindGroupLayout(0),
				entries: [uniform, ...buffers].flatMap((buffer, binding) =>
					buffer ? [{ binding, resource: { buffer } }] : [],
				),
			}),
		);
		pass.dispatchWorkgroups(groups[0], groups[1]);
		pass.end();
	}
}
