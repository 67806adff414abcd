import { expect, test } from "vitest";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import type { WeightMatrix } from "../../model/weight-matrix.ts";
import { openF32Matrices } from "./f32-matrices.ts";

const random = seededRandom(36);
const values = (length: number) => Float32Array.from({ length }, () => random.uniform() * 2 - 1);

function matrix(outputs: number, inputs: number): WeightMatrix & { values: Float32Array } {
	const weights = values(outputs * inputs);
	return { type: "F32", outputs, inputs, values: weights, bytes: new Uint8Array(weights.buffer) };
}

test.each([
	[256, [512, 256, 4, 4]],
	[48, [17, 1]],
	[300, [301]],
])(
	"a group of %i inputs and %j outputs: each matrix times each row, whatever other rows there are",
	async (inputs, widths) => {
		const engine = await openF32Matrices();
		const matrices = widths.map((outputs) => matrix(outputs, inputs));
		const group = await engine.group("test", matrices);
		const rowCount = 70;
		const rows = values(rowCount * inputs);
		const together = await group.multiply(rows, rowCount);
		for (const [m, { outputs, values: weights }] of matrices.entries()) {
			expect(together[m]!.length).toBe(rowCount * outputs);
			for (const [row, output] of [
				[0, 0],
				[3, outputs - 1],
				[69, outputs >> 1],
			] as const) {
				let sum = 0;
				for (let i = 0; i < inputs; i++) sum += weights[output * inputs + i]! * rows[row * inputs + i]!;
				expect(together[m]![row * outputs + output]).toBeCloseTo(sum, 3);
			}
		}
		for (const count of [1, 2, 3, 5, 8, 16, 33]) {
			const first = 70 - count;
			const some = await group.multiply(rows.subarray(first * inputs), count);
			for (const [m, { outputs }] of matrices.entries())
				expect(some[m]).toEqual(together[m]!.subarray(first * outputs));
		}
		await group.close();
	},
);

test("matrices of different widths are no group", async () => {
	const engine = await openF32Matrices();
	const group = engine.group("test", [matrix(4, 8), matrix(4, 9)]);
	await expect(group).rejects.toMatchObject({ code: "unsupported_shape" });
});
