/// <reference types="@webgpu/types" />
import { KvasirError } from "../../errors.ts";

/** A run of words in one buffer of the device. */
export interface DeviceSlice {
	readonly chunk: Chunk;
	readonly word: number;
	readonly words: number;
}

/** One storage buffer full of experts. */
export interface Chunk {
	readonly buffer: GPUBuffer;
	readonly words: number;
	/** Free runs, ascending, never touching each other. */
	free: { word: number; words: number }[];
}

/** Experts of one layer should share a buffer: each buffer costs a dispatch of its own. */
const chunkBytesMost = 2 ** 30;

/** Device memory for weights: a few large buffers, first fit, within a budget. An expert never straddles two. */
export class DeviceArena {
	readonly #device: GPUDevice;
	#budgetBytes: number;
	readonly #largestBytes: number;
	readonly #chunkBytes: number;
	#chunks: Chunk[] = [];

	constructor(device: GPUDevice, budgetBytes: number) {
		this.#device = device;
		this.#budgetBytes = budgetBytes;
		this.#largestBytes = Math.min(device.limits.maxBufferSize, device.limits.maxStorageBufferBindingSize);
		this.#chunkBytes = Math.min(this.#largestBytes, chunkBytesMost);
	}

	/** Throws `out_of_memory` when the budget, or the device, has no room. */
	async allocate(words: number): Promise<DeviceSlice> {
		for (const chunk of this.#chunks) {
			const at = chunk.free.findIndex((run) => run.words >= words);
			if (at >= 0) return take(chunk, at, words);
		}
		return take(await this.#grow(words * 4), 0, words);
	}

	release({ chunk, word, words }: DeviceSlice): void {
		chunk.free.push({ word, words });
		chunk.free.sort((a, b) => a.word - b.word);
		chunk.free = chunk.free.reduce<Chunk["free"]>((merged, run) => {
			const last = merged.at(-1);
			if (last && last.word + last.words === run.word) last.words += run.words;
			else merged.push({ ...run });
			return merged;
		}, []);
		if (chunk.free[0]?.words !== chunk.words) return;
		this.#chunks = this.#chunks.filter((other) => other !== chunk);
		chunk.buffer.destroy();
	}

	/** From now on at most so many bytes. */
	limit(budgetBytes: number): void {
		this.#budgetBytes = budgetBytes;
	}

	/** A new buffer for at least so many bytes; smaller ones are tried where the device has no room for a large one. */
	async #grow(neededBytes: number): Promise<Chunk> {
		const usedBytes = this.#chunks.reduce((sum, chunk) => sum + chunk.words * 4, 0);
		const room = this.#budgetBytes - usedBytes;
		if (room >= neededBytes && this.#largestBytes >= neededBytes) {
			for (let bytes = Math.min(this.#chunkBytes, room); ; bytes /= 2) {
				const size = Math.floor(Math.max(bytes, neededBytes) / 4) * 4;
				const buffer = await this.#create(size);
				if (buffer) {
					const chunk = { buffer, words: size / 4, free: [{ word: 0, words: size / 4 }] };
					this.#chunks.push(chunk);
					return chunk;
				}
				if (size === neededBytes) break;
			}
		}
		throw this.#full(neededBytes, usedBytes);
	}

	async #create(size: number): Promise<GPUBuffer | null> {
		this.#device.pushErrorScope("out-of-memory");
		const buffer = this.#device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });
		return (await this.#device.popErrorScope()) ? null : buffer;
	}

	#full(neededBytes: number, usedBytes: number): KvasirError {
		return new KvasirError(
			"out_of_memory",
			`Cannot load ${neededBytes} bytes on the device: ${usedBytes} of its ${this.#budgetBytes} bytes are in use`,
			{ hint: "Hold fewer experts, or allow more memory with --memory" },
		);
	}
}

function take(chunk: Chunk, at: number, words: number): DeviceSlice {
	const run = chunk.free[at]!;
	const slice = { chunk, word: run.word, words };
	run.word += words;
	run.words -= words;
	if (run.words === 0) chunk.free.splice(at, 1);
	return slice;
}
