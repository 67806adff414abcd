import { expect, test } from "vitest";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { exp64 } from "../../experts/exp64.ts";
import { combine } from "../../experts/reference.ts";
import { combineInto } from "./combine.ts";

const random = seededRandom(20);
const values = (length: number) => Float32Array.from({ length }, () => random.uniform() * 4 - 2);

test("combineInto() is the reference sum in rank order, then the gated shared vector, then the residual", () => {
	const [rows, topK, hidden] = [3, 4, 10];
	const vectors = values(rows * (topK + 1) * hidden);
	const routes = { topK, expert: new Uint16Array(rows * topK), weight: values(rows * topK) };
	const gates = values(rows);
	const before = values(rows * hidden);
	const residual = before.slice();
	combineInto(residual, hidden, { values: vectors, summed: null }, routes, gates);
	for (let row = 0; row < rows; row++) {
		const vector = (slot: number) => vectors.subarray((row * (topK + 1) + slot) * hidden).subarray(0, hidden);
		const weights = routes.weight.subarray(row * topK, (row + 1) * topK);
		const sum = combine([0, 1, 2, 3].map(vector), weights);
		const gate = Math.fround(1 / (1 + exp64(-gates[row]!)));
		for (let i = 0; i < hidden; i++) {
			const block = Math.fround(sum[i]! + Math.fround(gate * vector(topK)[i]!));
			expect(residual[row * hidden + i]).toBe(Math.fround(before[row * hidden + i]! + block));
		}
	}
});

test("a row that was summed elsewhere gives the same bytes as its vectors", () => {
	const [topK, hidden] = [3, 8];
	const vectors = values((topK + 1) * hidden);
	const routes = { topK, expert: new Uint16Array(topK), weight: values(topK) };
	const gates = values(1);
	const apart = new Float32Array(hidden);
	combineInto(apart, hidden, { values: vectors, summed: null }, routes, gates);
	const parts = [0, 1, 2].map((rank) => vectors.subarray(rank * hidden, (rank + 1) * hidden));
	const finished = vectors.slice();
	finished.set(combine(parts, routes.weight));
	finished.fill(Number.NaN, hidden, topK * hidden); // nobody may read the other slots
	const together = new Float32Array(hidden);
	combineInto(together, hidden, { values: finished, summed: Uint8Array.of(1) }, routes, gates);
	expect(together).toEqual(apart);
});
