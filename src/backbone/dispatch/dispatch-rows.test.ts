import { expect, test } from "vitest";
import { q14OfTensor } from "../../protocol/tensor.ts";
import { batchOf } from "../pay/compare-answer.ts";
import { dispatchMessage } from "./dispatch-rows.ts";

const hidden = 300;
const rows = Float32Array.from({ length: 3 * hidden }, (_, index) => index);
const quantised = {
	q: Int16Array.from({ length: 3 * hidden }, (_, index) => index - 450),
	scales: Float32Array.from([1, 2, 3, 4, 5, 6]),
};
const request = {
	layer: 4,
	rowCount: 3,
	rows,
	quantised,
	rowIndex: Uint16Array.from([0, 0, 1, 1, 2, 2]),
	expert: Uint16Array.from([9, 8, 7, 6, 5, 4]),
	weight: Float32Array.from([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
	phase: "decode" as const,
	sequence: [1, 1, 1],
};

test("dispatchMessage() takes the rows of its pairs only, and numbers them anew", () => {
	const message = dispatchMessage(request, { mode: 0, pairs: [1, 4, 5], rows: [0, 2] }, { hidden, q14: false });
	expect(message).toMatchObject({ layer: 4, mode: 0, dtype: "f32", rowCount: 2 });
	expect([...message.rowIndex]).toEqual([0, 1, 1]);
	expect([...message.expert]).toEqual([8, 5, 4]);
	expect(message.weight.length).toBe(0);
	const values = new Float32Array(message.rows.buffer);
	expect([...values]).toEqual([...rows.subarray(0, hidden), ...rows.subarray(2 * hidden)]);
});

test("dispatchMessage() sends weights in mode 1, and copies rows: the decode loop may reuse its memory", () => {
	const own = { ...request, rows: rows.slice() };
	const message = dispatchMessage(own, { mode: 1, pairs: [2, 3], rows: [1] }, { hidden, q14: false });
	expect([...message.weight]).toEqual([Math.fround(0.3), Math.fround(0.4)]);
	own.rows.fill(-1);
	expect(new Float32Array(message.rows.buffer)[0]).toBe(hidden);
});

test("dispatchMessage() in q14 lays out all q, then all scales, in half the bytes; an audit reads them back", () => {
	const message = dispatchMessage(request, { mode: 0, pairs: [2, 4], rows: [1, 2] }, { hidden, q14: true });
	expect(message.dtype).toBe("q14");
	const { q, scales } = q14OfTensor(message.rows, 2, hidden);
	expect([...q]).toEqual([...quantised.q.subarray(hidden)]);
	expect([...scales]).toEqual([3, 4, 5, 6]);
	expect(batchOf(message, hidden).rows).toEqual({ dtype: "q14", q, scales });
	const plain = dispatchMessage(
		{ ...request, quantised: undefined as never },
		{ mode: 0, pairs: [2], rows: [1] },
		{ hidden, q14: true },
	);
	expect(plain.dtype).toBe("f32");
});
