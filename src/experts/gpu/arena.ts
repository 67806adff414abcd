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

/** Device memory for weights: a few large buffers, first fit, within a budget. An expert never straddles two. */
export class DeviceArena {
	readonly #device: GPUDevice;
	readonly #budgetBytes: number;
	readonly #chunkBytes: number;
	readonly #chunks: Chunk[] = [];

	constructor(device: GPUDevice, budgetBytes: number) {
		this.#device = device;
		this.#budgetBytes = budgetBytes;
		const largest = Math.min(device.limits.maxBufferSize, device.limits.maxStorageBufferBindingSize);
		this.#chunkBytes = Math.min(largest, 256 * 2 ** 20);
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
	}

	async #grow(neededBytes: number): Promise<Chunk> {
		const usedBytes = this.#chunks.reduce((sum, chunk) => sum + chunk.words * 4, 0);
		const room = this.#budgetBytes - usedBytes;
		const bytes = Math.min(Math.max(neededBytes, this.#chunkBytes), room - (room % 4));
		if (bytes < neededBytes) throw this.#full(neededBytes, usedBytes);
		this.#device.pushErrorScope("out-of-memory");
		const buffer = this.#device.createBuffer({
			size: bytes,
			usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST,
		});
		if (await this.#device.popErrorScope()) throw this.#full(neededBytes, usedBytes);
		const chunk = { buffer, words: bytes / 4, free: [{ word: 0, words: bytes / 4 }] };
		this.#chunks.push(chunk);
		return chunk;
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
