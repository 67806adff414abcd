import type { ExpertBatch, Rows } from "../engine.ts";

/** A batch as several of at most `rowsMax` rows each. Their answers, one after the other, are the batch's answer. */
export function splitBatch(batch: ExpertBatch, rowsMax: number): ExpertBatch[] {
	const { rowCount, rowIndex, expert, weight } = batch;
	if (rowCount <= rowsMax) return [batch];
	const parts: ExpertBatch[] = [];
	let firstPair = 0;
	for (let firstRow = 0; firstRow < rowCount; firstRow += rowsMax) {
		const endRow = Math.min(rowCount, firstRow + rowsMax);
		let endPair = firstPair;
		while (endPair < rowIndex.length && rowIndex[endPair]! < endRow) endPair++;
		parts.push({
			layer: batch.layer,
			rowCount: endRow - firstRow,
			rows: sliceRows(batch.rows, rowCount, firstRow, endRow),
			rowIndex: rowIndex.slice(firstPair, endPair).map((row) => row - firstRow),
			expert: expert.subarray(firstPair, endPair),
			...(weight && { weight: weight.subarray(firstPair, endPair) }),
		});
		firstPair = endPair;
	}
	return parts;
}

function sliceRows(rows: Rows, rowCount: number, first: number, end: number): Rows {
	const part = <T extends Float32Array | Int16Array>(all: T): T => {
		const each = all.length / rowCount;
		return all.subarray(first * each, end * each) as T;
	};
	if (rows.dtype === "f32") return { dtype: "f32", values: part(rows.values) };
	return { dtype: "q14", q: part(rows.q), scales: part(rows.scales) };
}
