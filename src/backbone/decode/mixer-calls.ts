import { aligned } from "../../experts/canonical/arena.ts";
import type { MixerSpan } from "./mixer.ts";
import { nonFinite } from "./rows.ts";
import type { MixerMemory } from "./text-memory.ts";

/** Bytes of the work space, unless one row needs more: what stays in a processor's caches. */
const usualBytes = 4 * 1024 ** 2;
const tableRowBytes = 16;

/** Where everything of one kernel call lies in the work space. */
export interface WorkLayout<Part extends string> {
	/** Most rows of a call. */
	readonly rowsMost: number;
	/** Bytes of all of it, a multiple of 64. */
	readonly bytes: number;
	/** The table of spans (mixer-kernel/spans.ts), at most one a row. */
	readonly table: number;
	/** Address of each part. */
	readonly at: Readonly<Record<Part, number>>;
}

/** Lays out parts of some floats a row, behind `fixedBytes` for the mixer's own use. */
export function layOutWork<Part extends string>(
	fixedBytes: number,
	floatsPerRow: Readonly<Record<Part, number>>,
): WorkLayout<Part> {
	const parts = Object.entries(floatsPerRow) as [Part, number][];
	const rowBytes = parts.reduce((sum, [, floats]) => sum + 4 * floats, tableRowBytes);
	const rowsMost = Math.max(1, Math.floor((usualBytes - fixedBytes) / rowBytes));
	let end = aligned(fixedBytes);
	const take = (bytes: number) => {
		const at = end;
		end += aligned(bytes);
		return at;
	};
	const table = take(rowsMost * tableRowBytes);
	const at = Object.fromEntries(parts.map(([part, floats]) => [part, take(4 * rowsMost * floats)]));
	return { rowsMost, bytes: end, table, at: at as Record<Part, number> };
}

/** Rows that one call mixes: neighbours in the step, of texts in one memory; `spans` of them are in the table. */
export interface MixerCall {
	readonly memory: MixerMemory;
	readonly spans: number;
	readonly firstRow: number;
	readonly rows: number;
}

/**
 * Cuts a step into calls of a layer's kernel and writes each one's table: one call, unless the rows are more than the work space holds
 * or the texts lie in several memories. A span may be cut too: its tokens are mixed one after another in any case.
 */
export function forEachCall(
	spans: readonly MixerSpan[],
	layer: number,
	{ rowsMost, table }: WorkLayout<string>,
	perform: (call: MixerCall) => void,
): void {
	let memory: MixerMemory | null = null;
	let [count, firstRow, rows] = [0, 0, 0];
	const flush = () => {
		if (memory && rows > 0) perform({ memory, spans: count, firstRow, rows });
		firstRow += rows;
		count = 0;
		rows = 0;
	};
	for (const { sequence, tokens } of spans) {
		const { block, capacity } = sequence.layers[layer]!;
		if (block!.memory !== memory) flush();
		memory = block!.memory;
		for (let done = 0; done < tokens; ) {
			if (rows === rowsMost) flush();
			const take = Math.min(tokens - done, rowsMost - rows);
			const word = (table + count * tableRowBytes) >>> 2;
			memory.words[word] = take;
			memory.words[word + 1] = sequence.length + done;
			memory.words[word + 2] = block!.at;
			memory.words[word + 3] = capacity;
			count++;
			rows += take;
			done += take;
		}
	}
	flush();
}

/** Copies the call's rows of a projection (rows, width) into its memory. Throws `non_finite`. */
export function copyIn(
	{ memory, firstRow, rows }: MixerCall,
	projection: Float32Array,
	width: number,
	to: number,
): void {
	memory.floats.set(projection.subarray(firstRow * width, (firstRow + rows) * width), to >>> 2);
	if (!memory.call.finite(to, rows * width)) throw nonFinite("a projection into its mixer");
}

/** Copies the call's mixed rows (rows, width) out to their place in the step. Throws `non_finite`. */
export function copyOut({ memory, firstRow, rows }: MixerCall, from: number, mixed: Float32Array, width: number): void {
	if (!memory.call.finite(from, rows * width)) throw nonFinite("the output of its mixer");
	mixed.set(memory.floats.subarray(from >>> 2, (from >>> 2) + rows * width), firstRow * width);
}
