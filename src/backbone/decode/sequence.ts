import { KvasirError } from "../../errors.ts";
import type { ModelShape } from "../../model/shape.ts";
import { attentionBytesPerToken } from "./attention.ts";
import { deltaNetBytes } from "./delta-net.ts";
import type { Block, TextMemory } from "./text-memory.ts";

/** What one layer remembers of a text. */
export interface LayerState {
	/** null: nothing yet. */
	block: Block | null;
	/** Attention: room for the keys and values of so many tokens. Delta net: 0, its block never grows. */
	capacity: number;
}

/** Tokens an attention layer has room for at first; then the room is doubled. */
const firstCapacity = 64;

/** One text being decoded: how many tokens went in, and what each layer remembers of them. Cannot be rolled back; must be released. */
export class Sequence {
	readonly id: number;
	readonly layers: readonly LayerState[];
	/** Tokens decoded so far. */
	length = 0;
	readonly #shape: ModelShape;
	readonly #memory: TextMemory;

	/** A sequence without tokens. Throws `out_of_memory`. */
	constructor(id: number, shape: ModelShape, memory: TextMemory) {
		this.id = id;
		this.#shape = shape;
		this.#memory = memory;
		this.layers = shape.fullAttention.map(() => ({ block: null, capacity: 0 }));
		const { rows, states } = deltaNetBytes(shape);
		try {
			for (const [layer, state] of this.layers.entries()) {
				if (!shape.fullAttention[layer]) state.block = zeroed(memory.allocate(rows + states));
			}
		} catch (error) {
			this.release();
			throw error;
		}
	}

	/** Makes room for `tokens` more. Throws `bounds` beyond the context, and `out_of_memory`; the sequence is then as it was. */
	makeRoom(tokens: number): void {
		const { contextLength, fullAttention } = this.#shape;
		const needed = this.length + tokens;
		if (needed > contextLength) {
			throw new KvasirError("bounds", `Cannot decode: ${needed} tokens exceed the context of ${contextLength}`);
		}
		for (const [layer, state] of this.layers.entries()) {
			if (fullAttention[layer] && needed > state.capacity) this.#grow(state, needed);
		}
	}

	/** Gives back everything it remembers; it cannot be decoded any more. */
	release(): void {
		for (const state of this.layers) {
			if (state.block) this.#memory.release(state.block);
			state.block = null;
			state.capacity = 0;
		}
	}

	#grow(state: LayerState, needed: number): void {
		const { contextLength } = this.#shape;
		const capacity = Math.min(contextLength, Math.max(needed, 2 * state.capacity, firstCapacity));
		const rowBytes = attentionBytesPerToken(this.#shape) / 2;
		const larger = this.#memory.allocate(2 * capacity * rowBytes);
		if (state.block) {
			const { memory, at } = state.block;
			for (const [from, to] of [
				[at, larger.at],
				[at + state.capacity * rowBytes, larger.at + capacity * rowBytes],
			] as const) {
				larger.memory.bytes.set(memory.bytes.subarray(from, from + this.length * rowBytes), to);
			}
			this.#memory.release(state.block);
		}
		state.block = larger;
		state.capacity = capacity;
	}
}

function zeroed(block: Block): Block {
	block.memory.bytes.fill(0, block.at, block.at + block.bytes);
	return block;
}
