/** Rows one after the other. */
export function joinRows(rows: readonly Float32Array[]): Float32Array {
	const joined = new Float32Array(rows.reduce((sum, row) => sum + row.length, 0));
	let at = 0;
	for (const row of rows) {
		joined.set(row, at);
		at += row.length;
	}
	return joined;
}
