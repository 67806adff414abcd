/** Rows in canonical-1's activation blocks of 256 values. */
export interface QuantisedRows {
	/** (rows, hidden) */
	readonly q: Int16Array;
	/** (rows, ceil(hidden / 256)) */
	readonly scales: Float32Array;
}

const r32 = Math.fround;
const block = 256;
/** Adding and taking it away rounds to the nearest integer, ties to even (docs/numerics.md). */
const rounder = 12582912;

/** Cuts finite rows (rowCount, hidden) into activation blocks, as docs/numerics.md defines them: what dtype q14 carries. */
export function quantiseRows(rows: Float32Array, rowCount: number, hidden: number): QuantisedRows {
	const q = new Int16Array(rowCount * hidden);
	const scales = new Float32Array(rowCount * Math.ceil(hidden / block));
	let at = 0;
	for (let row = 0; row < rowCount; row++) {
		for (let start = row * hidden; start < (row + 1) * hidden; start += block) {
			const end = Math.min((row + 1) * hidden, start + block);
			scales[at++] = quantiseBlock(rows, start, end, q);
		}
	}
	return { q, scales };
}

/** Returns the block's scale. */
function quantiseBlock(rows: Float32Array, start: number, end: number, q: Int16Array): number {
	let most = 0;
	for (let i = start; i < end; i++) {
		const size = Math.abs(rows[i]!);
		if (size > most) most = size;
	}
	if (most < 2 ** -64) return 0;
	const inverse = r32(8191 / most);
	for (let i = start; i < end; i++) q[i] = r32(r32(r32(rows[i]! * inverse) + rounder) - rounder);
	return r32(most / 8191);
}
