import type { Failure } from "./job.ts";
import { failures } from "./job.ts";
import type { Kernel } from "./kernel-module.ts";
import { isQuantised, paddedBytes, panelOutputs, recordBytes, workSpace } from "./layout.ts";

/** Rows of a job in the exchange: floats, or (with `scales`) already quantised. */
export interface RowSource {
	/** Byte offset of the first row. */
	readonly at: number;
	/** Byte offset of the scales; -1 for floats. */
	readonly scales: number;
	readonly inputs: number;
}

/** A matrix in panels. */
export interface PackedMatrix {
	readonly type: number;
	readonly at: number;
	readonly inputs: number;
}

/** One thread's work space in one memory: a tile of rows as the kernels want them, and two buffers of outputs. */
export class WorkSpace {
	readonly kernel: Kernel;
	readonly #base: number;
	readonly #exchange: SharedArrayBuffer;
	/** What the tile holds, so that units that share it load it once. */
	#tile = "";

	constructor(kernel: Kernel, exchange: SharedArrayBuffer, slot: number) {
		this.kernel = kernel;
		this.#exchange = exchange;
		this.#base = slot * workSpace.bytes;
	}

	/** Forgets the tile: a new job's rows are other rows. */
	clear(): void {
		this.#tile = "";
	}

	address(part: "kernel" | "stage" | "rows" | "outputs" | "outputs2"): number {
		return this.#base + workSpace[part];
	}

	/** Makes the tile ready for weights of `type` from `count` rows, of which row i is number `rowAt(i)` of the source. */
	loadTile(type: number, source: RowSource, first: number, count: number, rowAt: (i: number) => number): Failure {
		const quantised = isQuantised(type);
		const tile = `${source.at} ${first} ${count} ${quantised}`;
		if (tile === this.#tile) return failures.none;
		this.#tile = "";
		for (let i = 0; i < count; i++) {
			const failure = quantised
				? this.#loadQuantised(source, rowAt(i), i, count)
				: this.#loadFloats(source, rowAt(i), this.address("rows") + i * paddedBytes(source.inputs));
			if (failure !== failures.none) return failure;
		}
		this.#tile = tile;
		return failures.none;
	}

	#loadQuantised({ at, scales, inputs }: RowSource, row: number, i: number, count: number): Failure {
		const { call } = this.kernel;
		const stage = this.address("stage");
		const record = this.address("rows") + i * 640;
		if (scales < 0) {
			this.copyIn(at + row * inputs * 4, inputs * 4, stage);
			return call.quantise(stage, inputs, record, count * 640) ? failures.none : failures.row;
		}
		const scaleBytes = (recordBytes(inputs) / 640) * 4;
		this.copyIn(at + row * inputs * 2, inputs * 2, stage);
		this.copyIn(scales + row * scaleBytes, scaleBytes, stage + inputs * 2);
		return call.takeQuantised(stage, stage + inputs * 2, inputs, record, count * 640) ? failures.none : failures.bounds;
	}

	#loadFloats({ at, inputs }: RowSource, row: number, to: number): Failure {
		this.kernel.bytes.fill(0, to + paddedBytes(inputs) - 16, to + paddedBytes(inputs));
		this.copyIn(at + row * inputs * 4, inputs * 4, to);
		return this.kernel.call.finite(to, inputs) ? failures.none : failures.row;
	}

	/** Outputs from..to of the tile's rows, row after row, each padded to whole panels; `from` is a multiple of the panel. */
	multiply(matrix: PackedMatrix, count: number, from: number, to: number, buffer: "outputs" | "outputs2"): void {
		const { type, inputs, at } = matrix;
		const { call } = this.kernel;
		const panels = Math.ceil((to - from) / panelOutputs);
		const weights = at + (from / panelOutputs) * call.panelBytes(type, inputs);
		const [x, y] = [this.address("rows"), this.address(buffer)];
		call.multiply(type, weights, x, count, inputs, panels, y, panels * panelOutputs * 4, this.address("kernel"));
	}

	copyIn(offset: number, bytes: number, to: number): void {
		this.kernel.bytes.set(new Uint8Array(this.#exchange, offset, bytes), to);
	}

	copyOut(from: number, floats: number, offset: number): void {
		new Float32Array(this.#exchange, offset, floats).set(
			this.kernel.floats.subarray(from >>> 2, (from >>> 2) + floats),
		);
	}
}
