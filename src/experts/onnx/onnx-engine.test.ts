import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasDevice } from "../../../test/support/device.ts";
import { dequantise } from "../../model/dequantise.ts";
import { type ExpertWeights, type TensorType, tensorTypes } from "../../model/weight-matrix.ts";
import type { ExpertEngine } from "../engine.ts";
import { expertRow } from "../reference.ts";
import { makeMatrix, makePlainRows, xorshift } from "../self-check-inputs.ts";
import { nBitsMatrix } from "./nbits-weights.ts";
import { openOnnxEngine } from "./onnx-engine.ts";

const types = Object.keys(tensorTypes) as TensorType[];
const hidden = 512;
const width = 256;

describe.each(types)("%s for MatMulNBits", (type) => {
	it("keeps every weight to the last bits of binary32", () => {
		const matrix = makeMatrix(type, 9, hidden, xorshift(4));
		const converted = nBitsMatrix(matrix);
		const weights = dequantise(matrix.bytes, type);
		for (let i = 0; i < weights.length; i++) {
			const expected = weights[i]!;
			const scale = Math.max(...weights.slice(i - (i % 32), i - (i % 32) + 32).map(Math.abs));
			expect(Math.abs(weightOf(converted, i) - expected)).toBeLessThanOrEqual(scale * 2 ** -20);
		}
	});
});

/** Weight number i of a converted matrix. */
function weightOf(matrix: ReturnType<typeof nBitsMatrix>, i: number): number {
	if ("values" in matrix) return matrix.values[i]!;
	const { bits, blockSize, packed, scales, offsets, inputs, outputs } = matrix;
	const block = Math.floor(i / blockSize);
	const q = bits === 8 ? packed[i]! - 128 : ((packed[i >> 1]! >> ((i & 1) * 4)) & 15) - 8;
	const blocks = inputs / blockSize;
	const offset = offsets ? offsets[(block % blocks) * outputs + Math.floor(block / blocks)]! : 0;
	return scales[block]! * q + offset;
}

/** numerics.md section 1: the worst row's ||y - r|| beyond 1e-6, as a part of ||r||. */
async function worstOf(engine: ExpertEngine, weights: ExpertWeights, rowCount: number): Promise<number> {
	await engine.load(2, 7, weights);
	const values = makePlainRows(rowCount, hidden, xorshift(9));
	const y = await engine.compute({
		layer: 2,
		rowCount,
		rows: { dtype: "f32", values },
		rowIndex: Uint16Array.from({ length: rowCount }, (_, row) => row),
		expert: new Uint16Array(rowCount).fill(7),
	});
	let worst = 0;
	for (let row = 0; row < rowCount; row++) {
		const reference = expertRow(weights, values.slice(row * hidden, (row + 1) * hidden));
		const difference = Math.hypot(...reference.map((value, i) => value - y[row * hidden + i]!));
		worst = Math.max(worst, Math.max(0, difference - 1e-6) / Math.hypot(...reference));
	}
	return worst;
}

function expertOf(gate: TensorType, down: TensorType): ExpertWeights {
	const next = xorshift(77);
	return {
		gate: makeMatrix(gate, width, hidden, next),
		up: makeMatrix(gate, width, hidden, next),
		down: makeMatrix(down, hidden, width, next),
	};
}

describe("the onnx engine on the CPU", () => {
	it.each(types)("computes %s experts within the tolerance of its class", async (type) => {
		const engine = await openOnnxEngine({ hidden, memoryBytes: 2 ** 28, device: "Some CPU (tm) 3" });
		expect(engine.engineClass).toMatch(/^ort:\d+\.\d+\.\d+:cpu:some-cpu-tm-3$/);
		const worst = await worstOf(engine, expertOf(type, type), 6);
		expect(worst).toBeLessThanOrEqual(0.04);
		// int8 activations lose something; plain weights lose next to nothing.
		if (type.startsWith("Q")) expect(worst).toBeGreaterThan(0);
		expect(engine.bytesHeld).toBeGreaterThan(0);
		await engine.close();
	});

	it("refuses a scale that is not finite", async () => {
		const engine = await openOnnxEngine({ hidden, memoryBytes: 2 ** 28, device: "cpu" });
		const weights = expertOf("Q4_K", "Q6_K");
		new DataView(weights.up.bytes.buffer, weights.up.bytes.byteOffset).setUint16(0, 0x7c00, true);
		await expect(engine.load(0, 0, weights)).rejects.toMatchObject({ code: "bad_weights" });
		await engine.close();
	});
});

describe.skipIf(!hasDevice)("the onnx engine on WebGPU", () => {
	let engine: ExpertEngine;
	beforeAll(async () => {
		engine = await openOnnxEngine({ hidden, memoryBytes: 2 ** 28, provider: "webgpu", device: "software" });
	});
	afterAll(() => engine.close());

	it.each(["Q4_K", "Q5_K", "Q6_K", "Q8_0"] as const)("computes %s experts within the tolerance", async (type) => {
		expect(engine.engineClass).toContain(":webgpu:");
		expect(await worstOf(engine, expertOf(type, type), 5)).toBeLessThanOrEqual(0.04);
	});
});

it("a provider that is not there says so in onnxruntime's own words", async () => {
	const engine = await openOnnxEngine({ hidden, memoryBytes: 2 ** 28, provider: "dml", device: "none" });
	await expect(engine.load(0, 0, expertOf("Q4_K", "Q4_K"))).rejects.toMatchObject({
		code: "engine_failed",
		message: expect.stringMatching(/dml/i),
	});
	await engine.close();
});
