import type { WorkerLink } from "../links/worker-link.ts";

/** Sequences remembered for one link; beyond, the longest untouched is forgotten. */
const sequencesMax = 65_536;

/** Which sequences used a worker's answers since its last passed audit. */
export class TaintLedger {
	/** Per link: a sequence and the last dispatch it used, the longest untouched first. */
	readonly #used = new WeakMap<WorkerLink, Map<number, number>>();

	used(worker: WorkerLink, id: number, sequences: readonly number[]): void {
		let used = this.#used.get(worker);
		if (used === undefined) {
			used = new Map();
			this.#used.set(worker, used);
		}
		for (const sequence of sequences) {
			const last = Math.max(id, used.get(sequence) ?? 0);
			used.delete(sequence);
			used.set(sequence, last);
		}
		if (used.size > sequencesMax) used.delete(used.keys().next().value!);
	}

	/** Every audit up to dispatch `id` passed: what used nothing later is clean. */
	passed(worker: WorkerLink, id: number): void {
		const used = this.#used.get(worker);
		for (const [sequence, last] of used ?? []) {
			if (last > id) break;
			used!.delete(sequence);
		}
	}

	/** Those that may carry a wrong answer, ascending; the ledger of the link begins anew. */
	take(worker: WorkerLink): number[] {
		const sequences = [...(this.#used.get(worker)?.keys() ?? [])];
		this.#used.delete(worker);
		return sequences.sort((a, b) => a - b);
	}
}
