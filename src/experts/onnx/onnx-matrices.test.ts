import { expect, it } from "vitest";
import { multiplyRow } from "../reference.ts";
import { makeMatrix, makePlainRows, xorshift } from "../self-check-inputs.ts";
import { openOnnxMatrices } from "./onnx-matrices.ts";

it("multiplies every matrix of a group with the same rows, near the definition", async () => {
	const next = xorshift(31);
	const matrices = [
		makeMatrix("Q4_K", 40, 512, next),
		makeMatrix("Q6_K", 8, 512, next),
		makeMatrix("F32", 4, 512, next),
	];
	const group = await (await openOnnxMatrices()).group("dense", matrices);
	const rows = makePlainRows(3, 512, next);
	const outs = await group.multiply(rows, 3);
	for (const [m, matrix] of matrices.entries()) {
		for (let row = 0; row < 3; row++) {
			const reference = multiplyRow(matrix, rows.slice(row * 512, (row + 1) * 512));
			const y = outs[m]!.subarray(row * matrix.outputs, (row + 1) * matrix.outputs);
			const difference = Math.hypot(...reference.map((value, i) => value - y[i]!));
			expect(difference).toBeLessThanOrEqual(0.04 * Math.hypot(...reference));
		}
	}
	await group.close();
});

it("refuses matrices that read rows of different widths", async () => {
	const next = xorshift(32);
	const matrices = [makeMatrix("Q4_K", 4, 512, next), makeMatrix("Q4_K", 4, 256, next)];
	await expect((await openOnnxMatrices()).group("odd", matrices)).rejects.toMatchObject({ code: "unsupported_shape" });
});
