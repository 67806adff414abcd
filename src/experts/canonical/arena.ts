import { KvasirError } from "../../errors.ts";

const pageBytes = 65_536;
const gibibyte = 1024 ** 3;
/** Most bytes of one WebAssembly memory; more weights get several (a matrix group or an expert never straddles two). */
export const memoryBytesMax = 3 * gibibyte;
const alignment = 64;

/** Where bytes lie: in which memory, and at which address of it. */
export interface Place {
	readonly memory: number;
	readonly at: number;
	readonly bytes: number;
}

interface Free {
	at: number;
	bytes: number;
}

/**
 * The shared WebAssembly memories and what is free in them: first fit, neighbours merged when given back.
 * Untouched pages cost nothing, so memories have their full size from the start.
 */
export class Arena {
	readonly memories: readonly WebAssembly.Memory[];
	readonly #free: Free[][];
	#held = 0;

	/**
	 * @param memoryBytes room for weights in all memories
	 * @param reservedBytes kept free at the start of each memory besides, for the threads' work space
	 */
	constructor(memoryBytes: number, reservedBytes: number, eachBytesMax = memoryBytesMax) {
		const room = eachBytesMax - reservedBytes;
		const sizes = Array.from({ length: Math.max(1, Math.ceil(memoryBytes / room)) }, (_, i) =>
			Math.min(room, memoryBytes - i * room),
		);
		this.memories = sizes.map((bytes) => makeMemory(reservedBytes + bytes));
		this.#free = sizes.map((bytes) => [{ at: reservedBytes, bytes: bytes - (bytes % alignment) }]);
	}

	/** Bytes given out. */
	get bytesHeld(): number {
		return this.#held;
	}

	/** Throws `out_of_memory`. */
	allocate(bytesWanted: number): Place {
		const place = this.tryAllocate(bytesWanted);
		if (place !== null) return place;
		const bytes = aligned(bytesWanted);
		throw new KvasirError("out_of_memory", `Cannot hold ${bytes} more bytes of weights: no room is left`, {
			hint: "give the engine more memory (--memory), or hold fewer experts",
			facts: { bytesWanted: bytes, bytesHeld: this.#held },
		});
	}

	/** Null: there is no hole for so many bytes. */
	tryAllocate(bytesWanted: number): Place | null {
		const bytes = aligned(bytesWanted);
		for (const [memory, free] of this.#free.entries()) {
			const index = free.findIndex((hole) => hole.bytes >= bytes);
			if (index < 0) continue;
			const hole = free[index]!;
			const { at } = hole;
			hole.at += bytes;
			hole.bytes -= bytes;
			if (hole.bytes === 0) free.splice(index, 1);
			this.#held += bytes;
			return { memory, at, bytes };
		}
		return null;
	}

	release({ memory, at, bytes }: Place): void {
		const free = this.#free[memory]!;
		let index = free.findIndex((hole) => hole.at > at);
		if (index < 0) index = free.length;
		free.splice(index, 0, { at, bytes });
		this.#held -= bytes;
		merge(free, index);
		merge(free, index - 1);
	}
}

/** Bytes in whole units of what an arena hands out. */
export function aligned(bytes: number): number {
	return Math.ceil(bytes / alignment) * alignment;
}

/** Joins the holes at `index` and after it when they touch. */
function merge(free: Free[], index: number): void {
	const [left, right] = [free[index], free[index + 1]];
	if (!left || !right || left.at + left.bytes !== right.at) return;
	left.bytes += right.bytes;
	free.splice(index + 1, 1);
}

function makeMemory(bytes: number): WebAssembly.Memory {
	const pages = Math.ceil(bytes / pageBytes);
	try {
		return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
	} catch (cause) {
		throw new KvasirError("out_of_memory", `Cannot reserve ${pages * pageBytes} bytes for weights`, {
			hint: "give the engine less memory (--memory)",
			cause,
		});
	}
}
