import type { ExpertBatch, Rows } from "../../experts/engine.ts";
import { weightedSum } from "../../experts/weighted-sum.ts";
import type { Dispatch } from "../../protocol/messages.ts";
import { floatsOfTensor, q14OfTensor } from "../../protocol/tensor.ts";

/** A partial of a tolerance class may be this far from the local one (numerics.md section 1). */
const relativeTolerance = 0.04;
const absoluteTolerance = 1e-6;

/** What was asked of a worker, without what only the wire needs. */
export type Asked = Omit<Dispatch, "kind" | "id" | "deadlineMs">;

/** The pairs of a dispatch as an engine takes them, one vector each. */
export function batchOf(asked: Asked, hidden: number): Omit<ExpertBatch, "weight"> {
	const rows: Rows =
		asked.dtype === "q14"
			? { dtype: "q14", ...q14OfTensor(asked.rows, asked.rowCount, hidden) }
			: { dtype: "f32", values: floatsOfTensor(asked.rows) };
	return { layer: asked.layer, rowCount: asked.rowCount, rows, rowIndex: asked.rowIndex, expert: asked.expert };
}

/** What the answer to a dispatch should have been: its pairs' vectors, or in mode 1 their weighted sums by row. */
export function expectedAnswer(asked: Asked, vectors: Float32Array, hidden: number): Float32Array {
	if (asked.mode === 0) return vectors;
	const sums = new Float32Array(asked.rowCount * hidden);
	const ranks = asked.expert.length / asked.rowCount;
	for (let row = 0; row < asked.rowCount; row++) {
		weightedSum(sums, row * hidden, hidden, vectors, row * ranks * hidden, asked.weight, row * ranks, ranks);
	}
	return sums;
}

/** The index of the first vector of `answer` that is not the expected one: by its bytes, or beyond the tolerance; -1: none. */
export function firstWrongVector(expected: Float32Array, answer: Float32Array, hidden: number, exact: boolean): number {
	for (let start = 0; start < expected.length; start += hidden) {
		const here = expected.subarray(start, start + hidden);
		const there = answer.subarray(start, start + hidden);
		if (exact ? !sameBits(here, there) : !isNear(here, there)) return start / hidden;
	}
	return -1;
}

function sameBits(a: Float32Array, b: Float32Array): boolean {
	return a.every((value, index) => Object.is(value, b[index]));
}

/** ||there - here|| <= 0.04 ||here|| + 1e-6 */
function isNear(here: Float32Array, there: Float32Array): boolean {
	let far = 0;
	let length = 0;
	for (let at = 0; at < here.length; at++) {
		far += (there[at]! - here[at]!) ** 2;
		length += here[at]! ** 2;
	}
	return Math.sqrt(far) <= relativeTolerance * Math.sqrt(length) + absoluteTolerance;
}
