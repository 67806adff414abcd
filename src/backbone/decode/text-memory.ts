import { KvasirError } from "../../errors.ts";
import { Arena, aligned, memoryBytesMax } from "../../experts/canonical/arena.ts";
import { compileMixers, instantiateMixers, type MixerExports } from "./mixer-module.ts";

/** One WebAssembly memory and the mixers' kernel over it: work space from address 0, then constants, then what texts remember. */
export interface MixerMemory {
	readonly call: MixerExports;
	readonly bytes: Uint8Array;
	readonly floats: Float32Array;
	readonly words: Uint32Array;
}

/** What one layer remembers of one text. */
export interface Block {
	readonly memory: MixerMemory;
	readonly at: number;
	readonly bytes: number;
}

export interface TextMemoryOptions {
	/** Kept free at the start of each memory for the mixers' work; a multiple of 64. */
	readonly workBytes: number;
	/** The largest block that will be asked for. */
	readonly blockBytesMost: number;
	/** Most bytes that texts may hold. @default unlimited */
	readonly bytesMost?: number;
	/** Least bytes of one memory; it always has room for four of the largest blocks, up to 3 GiB. @default 256 MiB */
	readonly eachBytes?: number;
}

/** Untouched pages cost nothing. */
const usualBytes = 256 * 1024 ** 2;

interface Memory extends MixerMemory {
	readonly arena: Arena;
}

/** Where the delta net states, keys and values of all texts lie: more memories as they are needed, fewer when they are empty. */
export class TextMemory {
	readonly #options: TextMemoryOptions;
	readonly #module = compileMixers();
	readonly #memories: Memory[] = [];
	readonly #constants: { readonly at: number; readonly values: Float32Array }[] = [];
	/** Where the constants end. */
	#reservedBytes: number;
	#held = 0;

	constructor(options: TextMemoryOptions) {
		this.#options = options;
		this.#reservedBytes = options.workBytes;
	}

	/** Bytes that texts hold. */
	get bytesHeld(): number {
		return this.#held;
	}

	/** WebAssembly memories there are. */
	get memoryCount(): number {
		return this.#memories.length;
	}

	/** Makes values part of every memory, at the address returned. Only before the first text. */
	addConstant(values: Float32Array): number {
		if (this.#memories.length > 0) throw new KvasirError("internal", "Cannot add a constant: texts have begun");
		const at = this.#reservedBytes;
		this.#constants.push({ at, values });
		this.#reservedBytes += aligned(values.byteLength);
		return at;
	}

	/** A block of unknown content. Throws `out_of_memory`. */
	allocate(bytesWanted: number): Block {
		const bytes = aligned(bytesWanted);
		if (this.#held + bytes > (this.#options.bytesMost ?? Number.POSITIVE_INFINITY)) throw this.#full(bytes);
		for (const memory of this.#memories) {
			const place = memory.arena.tryAllocate(bytes);
			if (place !== null) return this.#give(memory, place.at, bytes);
		}
		const memory = this.#addMemory(bytes);
		const place = memory.arena.tryAllocate(bytes);
		if (place === null) throw this.#full(bytes);
		return this.#give(memory, place.at, bytes);
	}

	release({ memory, at, bytes }: Block): void {
		const index = this.#memories.indexOf(memory as Memory);
		const { arena } = this.#memories[index]!;
		arena.release({ memory: 0, at, bytes });
		this.#held -= bytes;
		if (arena.bytesHeld === 0 && index > 0) this.#memories.splice(index, 1);
	}

	#give(memory: MixerMemory, at: number, bytes: number): Block {
		this.#held += bytes;
		return { memory, at, bytes };
	}

	#addMemory(bytesWanted: number): Memory {
		const { blockBytesMost, eachBytes = usualBytes } = this.#options;
		const reserved = this.#reservedBytes;
		const room = Math.min(memoryBytesMax - reserved, Math.max(eachBytes, 4 * aligned(blockBytesMost)));
		try {
			const arena = new Arena(room, reserved);
			const { buffer } = arena.memories[0]!;
			const memory = {
				arena,
				call: instantiateMixers(this.#module, arena.memories[0]!),
				bytes: new Uint8Array(buffer),
				floats: new Float32Array(buffer),
				words: new Uint32Array(buffer),
			};
			for (const { at, values } of this.#constants) memory.floats.set(values, at >>> 2);
			this.#memories.push(memory);
			return memory;
		} catch (cause) {
			throw this.#full(bytesWanted, cause);
		}
	}

	#full(bytesWanted: number, cause?: unknown): KvasirError {
		return new KvasirError("out_of_memory", `Cannot remember ${bytesWanted} more bytes of a text: no room is left`, {
			hint: "decode fewer texts together, or shorter ones",
			facts: { bytesWanted, bytesHeld: this.#held },
			cause,
		});
	}
}
