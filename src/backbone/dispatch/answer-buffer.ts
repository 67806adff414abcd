import { allFinite } from "../../experts/finite.ts";
import type { Partials } from "../../protocol/messages.ts";
import { floatsOfTensor } from "../../protocol/tensor.ts";
import type { RemoteAnswer, RemoteRequest } from "../remote.ts";
import type { PlannedDispatch } from "./plan.ts";

/** Where the answers to one request are put together: each vector's bytes are copied once, from the message to their place. */
export class AnswerBuffer {
	/** Pairs that were asked again of another holder. */
	retried = 0;
	readonly #hidden: number;
	readonly #rowIndex: Uint16Array;
	readonly #vectors: Float32Array;
	readonly #bytes: Uint8Array;
	readonly #worker: Int16Array;
	readonly #summed: Uint8Array;
	readonly #workers: string[] = [];
	readonly #failures = new Map<string, number>();
	#finished = false;

	constructor(request: RemoteRequest, hidden: number) {
		this.#hidden = hidden;
		this.#rowIndex = request.rowIndex;
		this.#vectors = new Float32Array(request.expert.length * hidden);
		this.#bytes = new Uint8Array(this.#vectors.buffer);
		this.#worker = new Int16Array(request.expert.length).fill(-1);
		this.#summed = new Uint8Array(request.rowCount);
	}

	/** Copies an answer to its place and looks at it there; it counts only once `accept` is called. One that nobody waits for any more is only looked at. */
	place(
		{ mode, pairs, rows }: Pick<PlannedDispatch<unknown>, "mode" | "pairs" | "rows">,
		{ dtype, vectors }: Pick<Partials, "dtype" | "vectors">,
	): "placed" | "malformed" | "non_finite" {
		const vectorBytes = this.#hidden * 4;
		const slots = mode === 1 ? firstPairs(pairs, this.#rowIndex) : pairs;
		const expected = (mode === 1 ? rows : pairs).length * vectorBytes;
		if (dtype !== "f32" || vectors.length !== expected) return "malformed";
		if (!this.#waitsFor(pairs)) return allFinite(floatsOfTensor(vectors)) ? "placed" : "non_finite";
		let finite = true;
		slots.forEach((slot, index) => {
			this.#bytes.set(vectors.subarray(index * vectorBytes, (index + 1) * vectorBytes), slot * vectorBytes);
			finite &&= allFinite(this.#vectors.subarray(slot * this.#hidden, (slot + 1) * this.#hidden));
		});
		if (finite) return "placed";
		for (const slot of slots) this.#vectors.fill(0, slot * this.#hidden, (slot + 1) * this.#hidden);
		return "non_finite";
	}

	/** False: it is not used, for another was faster or the request is over. */
	accept({ mode, pairs, rows }: Pick<PlannedDispatch<unknown>, "mode" | "pairs" | "rows">, address: string): boolean {
		if (!this.#waitsFor(pairs)) return false;
		let index = this.#workers.indexOf(address);
		if (index < 0) index = this.#workers.push(address) - 1;
		for (const pair of pairs) this.#worker[pair] = index;
		if (mode === 1) for (const row of rows) this.#summed[row] = 1;
		return true;
	}

	/** Dispatches are answered as a whole. */
	#waitsFor(pairs: readonly number[]): boolean {
		return !this.#finished && this.#worker[pairs[0]!]! < 0;
	}

	fail(pairs: readonly number[], reason: string): void {
		if (pairs.length > 0) this.#failures.set(reason, (this.#failures.get(reason) ?? 0) + pairs.length);
	}

	/** Nothing is written to the answer afterwards. */
	finish(): RemoteAnswer {
		this.#finished = true;
		return {
			vectors: this.#vectors,
			worker: this.#worker,
			summed: this.#summed,
			workers: this.#workers,
			retried: this.retried,
			failures: [...this.#failures].map(([reason, pairs]) => ({ reason, pairs })),
		};
	}
}

/** The first pair of each row. */
function firstPairs(pairs: readonly number[], rowIndex: Uint16Array): number[] {
	return pairs.filter((pair, at) => at === 0 || rowIndex[pairs[at - 1]!] !== rowIndex[pair]);
}
