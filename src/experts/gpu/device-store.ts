/// <reference types="@webgpu/types" />
import { KvasirError } from "../../errors.ts";
import type { WeightMatrix } from "../../model/weight-matrix.ts";
import { checkMatrix } from "../canonical/layout.ts";
import { DeviceArena, type DeviceSlice } from "./arena.ts";
import { deviceWords, packWeights } from "./device-weights.ts";
import { weightsAreFinite } from "./finite-weights.ts";
import type { DeviceMatrix } from "./plan.ts";

/** Matrices that came together and lie side by side on the device. */
export interface Held {
	readonly matrices: readonly DeviceMatrix[];
	readonly slice: DeviceSlice;
}

/** The weights on a device, in their compact form. */
export class DeviceStore {
	readonly #device: GPUDevice;
	readonly #arena: DeviceArena;
	#words = 0;

	constructor(device: GPUDevice, memoryBytes: number) {
		this.#device = device;
		this.#arena = new DeviceArena(device, memoryBytes);
	}

	get bytesHeld(): number {
		return this.#words * 4;
	}

	/** Throws `bad_weights`, `unsupported_type`, `unsupported_shape`, `out_of_memory`. */
	async hold(name: string, matrices: readonly WeightMatrix[]): Promise<Held> {
		for (const matrix of matrices) {
			checkMatrix(name, matrix);
			if (!weightsAreFinite(matrix)) {
				throw new KvasirError("bad_weights", `Cannot load ${name}: a weight or scale is not finite`);
			}
		}
		const slice = await this.#arena.allocate(matrices.reduce((sum, matrix) => sum + deviceWords(matrix), 0));
		const packed = new Uint8Array(slice.words * 4);
		let word = 0;
		const placed = matrices.map((matrix): DeviceMatrix => {
			const words = deviceWords(matrix);
			packWeights(matrix, packed.subarray(word * 4, (word + words) * 4));
			const at = { chunk: slice.chunk, word: slice.word + word, words };
			word += words;
			return { type: matrix.type, outputs: matrix.outputs, inputs: matrix.inputs, slice: at };
		});
		this.#device.queue.writeBuffer(slice.chunk.buffer, slice.word * 4, packed);
		this.#words += slice.words;
		return { matrices: placed, slice };
	}

	/** From now on at most so many bytes. */
	limit(memoryBytes: number): void {
		this.#arena.limit(memoryBytes);
	}

	release({ slice }: Held): void {
		this.#arena.release(slice);
		this.#words -= slice.words;
	}
}
