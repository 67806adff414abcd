import { runExpertUnit } from "./expert-units.ts";
import { control, type Failure, failures, header, jobKinds } from "./job.ts";
import type { JobView } from "./job-view.ts";
import { instantiateKernel } from "./kernel-module.ts";
import { runExponentials, runMatrixUnit, runPackUnit } from "./matrix-units.ts";
import { WorkSpace } from "./work-space.ts";

/** What every thread of an engine is given. */
export interface Shared {
	readonly module: WebAssembly.Module;
	readonly memories: readonly WebAssembly.Memory[];
	readonly exchange: SharedArrayBuffer;
	readonly control: Int32Array;
}

/** Turns of a loop before a thread that waits goes to sleep: some microseconds. */
const spins = 2000;

/** Computes units, on the thread that made it; `slot` says which work space is its own. */
export class Runner implements JobView {
	readonly control: Int32Array;
	words: Int32Array = new Int32Array();
	readonly #shared: Shared;
	readonly #slot: number;
	readonly #spaces: (WorkSpace | undefined)[] = [];

	constructor(shared: Shared, slot: number) {
		this.#shared = shared;
		this.control = shared.control;
		this.#slot = slot;
	}

	/** Claims and runs units of the current job until none is left. A crash is the job's failure, and is thrown. */
	run(): void {
		const { exchange } = this.#shared;
		this.words = new Int32Array(exchange, 0, Math.floor(exchange.byteLength / 4));
		for (const space of this.#spaces) space?.clear();
		try {
			this.#claimAll(this.words[header.units]!, this.words[header.kind]!);
		} catch (error) {
			this.#fail(failures.crashed);
			throw error;
		}
	}

	#claimAll(units: number, kind: number): void {
		for (;;) {
			const unit = Atomics.add(this.control, control.next, 1);
			if (unit >= units || this.failed()) return;
			const failure = this.#runUnit(kind, unit);
			if (failure !== failures.none) this.#fail(failure);
		}
	}

	#runUnit(kind: number, unit: number): Failure {
		switch (kind) {
			case jobKinds.experts:
				return runExpertUnit(this, unit);
			case jobKinds.matrices:
				return runMatrixUnit(this, unit);
			case jobKinds.pack:
				return runPackUnit(this, unit);
			default:
				return runExponentials(this);
		}
	}

	#fail(failure: Failure): void {
		Atomics.compareExchange(this.control, control.failure, failures.none, failure);
	}

	failed(): boolean {
		return Atomics.load(this.control, control.failure) !== failures.none;
	}

	space(memory: number): WorkSpace {
		let space = this.#spaces[memory];
		if (!space) {
			const { module, memories, exchange } = this.#shared;
			space = new WorkSpace(instantiateKernel(module, memories[memory]!), exchange, this.#slot);
			this.#spaces[memory] = space;
		}
		return space;
	}

	waitFor(counters: Int32Array, index: number, count: number): void {
		for (let turn = 0; Atomics.load(counters, index) < count && !this.failed(); turn++) {
			if (turn < spins) continue;
			// A failure elsewhere wakes nobody: look again after a millisecond.
			Atomics.wait(counters, index, Atomics.load(counters, index), 1);
		}
	}
}
