import type { Dispatch } from "../../protocol/messages.ts";
import type { RemoteRequest } from "../remote.ts";
import type { PlannedDispatch } from "./plan.ts";

/** The message of a planned dispatch, its rows copied once: the decode loop may reuse its memory before a slow link has sent them. */
export function dispatchMessage(
	request: RemoteRequest,
	{ mode, pairs, rows }: Pick<PlannedDispatch<unknown>, "mode" | "pairs" | "rows">,
	{ hidden, q14 }: { hidden: number; q14: boolean },
): Omit<Dispatch, "kind" | "id" | "deadlineMs"> {
	const position = new Map(rows.map((row, index) => [row, index]));
	const quantised = q14 ? request.quantised : undefined;
	return {
		layer: request.layer,
		mode,
		dtype: quantised === undefined ? "f32" : "q14",
		rowCount: rows.length,
		rowIndex: Uint16Array.from(pairs, (pair) => position.get(request.rowIndex[pair]!)!),
		expert: Uint16Array.from(pairs, (pair) => request.expert[pair]!),
		weight: mode === 1 ? Float32Array.from(pairs, (pair) => request.weight[pair]!) : new Float32Array(0),
		rows:
			quantised === undefined
				? gather([{ from: request.rows, width: hidden }], rows)
				: gather(
						[
							{ from: quantised.q, width: hidden },
							{ from: quantised.scales, width: Math.ceil(hidden / 256) },
						],
						rows,
					),
	};
}

/** The chosen rows of each matrix, one matrix after the other, as little-endian bytes. */
function gather(
	matrices: readonly { readonly from: Float32Array | Int16Array; readonly width: number }[],
	rows: readonly number[],
): Uint8Array {
	const bytesPerRow = matrices.reduce((sum, { from, width }) => sum + width * from.BYTES_PER_ELEMENT, 0);
	const out = new Uint8Array(rows.length * bytesPerRow);
	let at = 0;
	for (const { from, width } of matrices) {
		const stride = width * from.BYTES_PER_ELEMENT;
		const bytes = new Uint8Array(from.buffer, from.byteOffset, from.byteLength);
		for (const row of rows) {
			out.set(bytes.subarray(row * stride, (row + 1) * stride), at);
			at += stride;
		}
	}
	return out;
}
