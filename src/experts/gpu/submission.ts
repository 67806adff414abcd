/// <reference types="@webgpu/types" />

import { KvasirError } from "../../errors.ts";
import type { Rows } from "../engine.ts";
import { packBlocks } from "./pack-blocks.ts";
import type { Kernel, Pipelines } from "./pipelines.ts";
import { type Product, planPasses } from "./plan.ts";
import type { Scratch } from "./scratch.ts";
import { isBlockType, outputsPerGroup } from "./wgsl-dot.ts";

/** Activation rows on the device: plain, and cut into activation blocks (wgsl-rows.ts). */
export interface DeviceRows {
	readonly width: number;
	readonly rows: number;
	readonly values: GPUBuffer;
	readonly packed: GPUBuffer;
	readonly sums: GPUBuffer;
	readonly scales: GPUBuffer;
}

interface Step {
	readonly kernel: Kernel;
	/** Up to eight words, read by the shader as its `Shape`. */
	readonly shape: readonly number[];
	readonly buffers: readonly GPUBuffer[];
	readonly groups: readonly [x: number, y: number];
}

/** Shapes lie this far apart in their buffer: no device asks for more. */
const shapeStrideBytes = 256;
const errorScopes = ["validation", "out-of-memory", "internal"] as const;

/** The steps of a batch, gathered, then written and submitted at once: one command buffer, one pass, three uploads. */
export class Submission {
	readonly #device: GPUDevice;
	readonly #pipelines: Pipelines;
	readonly #scratch: Scratch;
	readonly #steps: Step[] = [];
	/** Words of the tables that shaders read beside their shape: jobs, slots, starts, weights. */
	readonly #plan: number[] = [];
	readonly #flags: GPUBuffer;
	/** Grown before the first step names it, so that bind groups are made of the final one. */
	readonly #planBuffer: GPUBuffer;

	/** @param planWords the most words that the tables will take */
	constructor(device: GPUDevice, pipelines: Pipelines, scratch: Scratch, planWords: number) {
		this.#device = device;
		this.#pipelines = pipelines;
		this.#scratch = scratch;
		for (const scope of errorScopes) device.pushErrorScope(scope);
		this.#flags = scratch.upload("flags", new Uint32Array(2));
		this.#planBuffer = scratch.get("plan", planWords * 4);
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
		if (rows.dtype === "f32") {
			const entered = this.rows(name, width, count);
			this.#scratch.upload(`${name}.values`, rows.values.subarray(first * width, (first + count) * width));
			const { values, packed, sums, scales } = entered;
			this.#quantise(this.#pipelines.quantise, entered, [values, packed, sums, scales]);
			return entered;
		}
		const { packed, sums, scales } = packBlocks(rows, width, first, count);
		this.#scratch.upload(`${name}.packed`, packed);
		this.#scratch.upload(`${name}.sums`, sums);
		this.#scratch.upload(`${name}.scales`, scales);
		return this.rows(name, width, count);
	}

	/** `rows` = silu(g) * u, cut into blocks; `source` holds g of all rows, then u of all rows. */
	activate(rows: DeviceRows, source: GPUBuffer): void {
		const { values, packed, sums, scales } = rows;
		this.#quantise(this.#pipelines.activate, rows, [source, values, packed, sums, scales]);
	}

	/** Multiplies; each product goes to its row of `outputs`. All matrices have one shape. */
	multiply(products: readonly Product[], rows: DeviceRows, outputs: GPUBuffer): void {
		for (const { type, outputs: width, inputs, chunk, jobs, jobCount } of planPasses(products, this.#plan)) {
			const block = isBlockType(type);
			const read = block ? [rows.packed, rows.sums, rows.scales] : [rows.values];
			const perGroup = block ? outputsPerGroup.block : outputsPerGroup.float;
			this.#steps.push({
				kernel: this.#pipelines.dot(type),
				shape: [width, inputs, inputs / (type === "Q8_0" ? 32 : 256), Math.ceil(inputs / 256), jobs],
				buffers: [chunk.buffer, this.#planBuffer, outputs, this.#flags, ...read],
				groups: [Math.ceil(width / perGroup), jobCount],
			});
		}
	}

	/** Mode 1: (rows, width) sums of `vectors`; the pairs of row r are first[r] .. first[r + 1]. */
	sumRows(vectors: GPUBuffer, width: number, first: Uint32Array, weight: Float32Array): GPUBuffer {
		const rows = first.length - 1;
		const summed = this.#scratch.get("summed", rows * width * 4);
		const firstWord = this.#plan.length;
		this.#plan.push(...first);
		const weightWord = this.#plan.length;
		this.#plan.push(...new Uint32Array(weight.slice().buffer));
		this.#steps.push({
			kernel: this.#pipelines.sumRows,
			shape: [width, firstWord, weightWord],
			buffers: [vectors, this.#planBuffer, summed, this.#flags],
			groups: [Math.ceil(width / 64), rows],
		});
		return summed;
	}

	/** exp32 of each value. */
	exponentials(values: Float32Array): GPUBuffer {
		const source = this.#scratch.upload("exponents", values);
		const result = this.#scratch.get("exponentials", values.byteLength);
		const groups = [Math.ceil(values.length / 64), 1] as const;
		this.#steps.push({
			kernel: this.#pipelines.exponentials,
			shape: [values.length],
			buffers: [source, result],
			groups,
		});
		return result;
	}

	/**
	 * Submits, waits, and gives back the result's words and the two flags (a row, a result that is not finite).
	 * Throws `engine_failed` with the device's own words.
	 */
	async finish(result: GPUBuffer, words: number): Promise<{ values: Float32Array; flags: Uint32Array }> {
		const bytes = words * 4;
		const staging = this.#scratch.get("staging", bytes + 8, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
		this.#device.queue.submit([this.#encode(result, bytes, staging)]);
		const errors = errorScopes.map(() => this.#device.popErrorScope());
		const mapped = staging.mapAsync(GPUMapMode.READ, 0, bytes + 8).catch(() => {});
		for (const error of await Promise.all(errors)) {
			if (!error) continue;
			await mapped;
			this.#scratch.clear();
			throw new KvasirError("engine_failed", `Cannot compute: the device says: ${error.message}`);
		}
		await mapped;
		if (staging.mapState !== "mapped") throw new KvasirError("engine_failed", "Cannot compute: the device was lost");
		const range = staging.getMappedRange(0, bytes + 8);
		const values = new Float32Array(range.slice(0, bytes));
		const flags = new Uint32Array(range.slice(bytes));
		staging.unmap();
		return { values, flags };
	}

	#quantise(kernel: Kernel, { width, rows }: DeviceRows, buffers: readonly GPUBuffer[]): void {
		const blocks = Math.ceil(width / 256);
		this.#steps.push({
			kernel,
			shape: [width, rows, blocks],
			buffers: [...buffers, this.#flags],
			groups: [blocks, rows],
		});
	}

	#encode(result: GPUBuffer, bytes: number, staging: GPUBuffer): GPUCommandBuffer {
		const words = shapeStrideBytes / 4;
		const shapes = new Uint32Array(this.#steps.length * words);
		for (const [index, { shape }] of this.#steps.entries()) shapes.set(shape, index * words);
		const shape = this.#scratch.upload("shapes", shapes, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST);
		this.#scratch.upload("plan", Uint32Array.from(this.#plan));
		const encoder = this.#device.createCommandEncoder();
		const pass = encoder.beginComputePass();
		for (const [index, { kernel, buffers, groups }] of this.#steps.entries()) {
			pass.setPipeline(kernel.pipeline);
			pass.setBindGroup(0, this.#scratch.group(kernel, shape, buffers), [index * shapeStrideBytes]);
			pass.dispatchWorkgroups(groups[0], groups[1]);
		}
		pass.end();
		encoder.copyBufferToBuffer(result, 0, staging, 0, bytes);
		encoder.copyBufferToBuffer(this.#flags, 0, staging, bytes, 8);
		return encoder.finish();
	}
}
