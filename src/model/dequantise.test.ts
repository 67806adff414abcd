import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { dequantise } from "./dequantise.ts";
import { f16ToF32, f32ToF16 } from "./half.ts";
import type { TensorType } from "./weight-matrix.ts";

const folder = packagePath("fixtures/reference/dequant-cases");
const { cases } = JSON.parse(readFileSync(`${folder}/index.json`, "utf8")) as {
	cases: { type: TensorType; elems: number }[];
};

describe("dequantise()", () => {
	test.each(cases)("equals ggml bit for bit: $type", ({ type, elems }) => {
		const weights = dequantise(readFileSync(`${folder}/${type}.bin`), type);
		expect(weights.length).toBe(elems);
		expect(Buffer.from(weights.buffer).equals(readFileSync(`${folder}/${type}.f32`))).toBe(true);
	});

	test("widens F32, F16 and BF16 exactly", () => {
		const values = new Float32Array([0, -0, 1, -2.5, 2 ** -24, 65_504, Number.NEGATIVE_INFINITY]);
		const f16 = new Uint16Array([0, 0x8000, 0x3c00, 0xc100, 1, 0x7bff, 0xfc00]);
		expect(dequantise(new Uint8Array(f16.buffer), "F16")).toEqual(values);
		expect(dequantise(new Uint8Array(values.buffer), "F32")).toEqual(values);
		const bf16 = new Uint16Array([0x3f80, 0xc020, 0x0001]);
		expect(dequantise(new Uint8Array(bf16.buffer), "BF16")).toEqual(new Float32Array([1, -2.5, 2 ** -133]));
	});

	test("reads bytes at any alignment", () => {
		const block = readFileSync(`${folder}/Q4_K.bin`).subarray(0, 144);
		const shifted = new Uint8Array(145);
		shifted.set(block, 1);
		expect(dequantise(shifted.subarray(1), "Q4_K")).toEqual(dequantise(block, "Q4_K"));
	});

	test("refuses a cut block", () => {
		expect(() => dequantise(new Uint8Array(143), "Q4_K")).toThrow(
			expect.objectContaining({ code: "unsupported_shape" }),
		);
	});
});

test("f32ToF16() and f16ToF32() are inverse on every finite binary16", () => {
	for (let bits = 0; bits < 65_536; bits++) {
		const value = f16ToF32(bits);
		if (Number.isNaN(value)) continue;
		if (f32ToF16(value) !== bits) throw new Error(`bits ${bits}: ${value} -> ${f32ToF16(value)}`);
	}
});

test("f32ToF16() rounds halves to even and large values to infinity", () => {
	expect(f32ToF16(1 + 2 ** -11)).toBe(0x3c00);
	expect(f32ToF16(1 + 3 * 2 ** -11)).toBe(0x3c02);
	expect(f32ToF16(65_519)).toBe(0x7bff);
	expect(f32ToF16(65_520)).toBe(0x7c00);
	expect(f32ToF16(2 ** -25)).toBe(0);
	expect(f32ToF16(2 - 2 ** -12)).toBe(0x4000);
});
