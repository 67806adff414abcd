import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { openModel } from "../model/open-model.ts";
import type { TensorType, WeightMatrix } from "../model/weight-matrix.ts";
import { combine, exp32, exp64, expertRow, multiplyRow, quantiseRow, routerWeights, silu } from "./reference.ts";

// fixtures/reference/canonical-cases was made by two implementations that are not part of this project.

const folder = packagePath("fixtures/reference/canonical-cases/");
const bytes = (name: string) => new Uint8Array(readFileSync(folder + name));
const floats = (name: string) => new Float32Array(bytes(name).buffer);
const doubles = (name: string) => new Float64Array(bytes(name).buffer);
const raw = (array: ArrayBufferView) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("hex");

interface DotCase {
	readonly type: TensorType;
	readonly outputs: number;
	readonly inputs: number;
	readonly rows: number;
	readonly weights: string;
	readonly x: string;
	readonly y: string;
	readonly q?: string;
	readonly s?: string;
}
interface ExpertCase {
	readonly model: string;
	readonly layer: number;
	readonly expert: number;
	readonly rows: number;
	readonly x: string;
	readonly y: string;
}
const cases = JSON.parse(readFileSync(`${folder}index.json`, "utf8")) as { dot: DotCase[]; expert: ExpertCase[] };

const rowsOf = (values: Float32Array, rows: number) =>
	Array.from({ length: rows }, (_, r) => values.subarray((r * values.length) / rows, ((r + 1) * values.length) / rows));
const joined = (rows: Float32Array[]) => Float32Array.from(rows.flatMap((row) => [...row]));

test.each(cases.dot)("multiplyRow() and quantiseRow() give the bytes of $weights", (dot) => {
	const matrix: WeightMatrix = { ...dot, bytes: bytes(dot.weights) };
	const rows = rowsOf(floats(dot.x), dot.rows);
	expect(raw(joined(rows.map((row) => multiplyRow(matrix, row))))).toBe(raw(floats(dot.y)));
	if (!dot.q || !dot.s) return;
	const quantised = rows.map(quantiseRow);
	expect(raw(Int16Array.from(quantised.flatMap(({ q }) => [...q])))).toBe(raw(bytes(dot.q)));
	expect(raw(joined(quantised.map(({ scales }) => scales)))).toBe(raw(floats(dot.s)));
});

test.each(cases.expert)("expertRow() gives the bytes of layer $layer, expert $expert", async (given) => {
	const model = await openModel(packagePath(`fixtures/tiny/${given.model}`));
	const weights = await model.weights.expert(given.layer, given.expert);
	await model.weights.close();
	const y = rowsOf(floats(given.x), given.rows).map((row) => expertRow(weights, row));
	expect(raw(joined(y))).toBe(raw(floats(given.y)));
});

describe("the functions of one value", () => {
	test("exp32() and silu() give the bytes of the cases", () => {
		const z = floats("exp32.z.f32");
		expect(raw(z.map(exp32))).toBe(raw(floats("exp32.y.f32")));
		expect(raw(z.map(silu))).toBe(raw(floats("silu.y.f32")));
	});

	test("exp64() gives the bytes of the cases and stays within one unit of the last place of Math.exp", () => {
		const z = doubles("exp64.z.f64");
		expect(raw(z.map(exp64))).toBe(raw(doubles("exp64.y.f64")));
		for (const value of z.filter((v) => Math.abs(v) < 700)) {
			expect(Math.abs(exp64(value) / Math.exp(value) - 1)).toBeLessThan(2 ** -51);
		}
	});

	test("routerWeights() gives the bytes of the cases", () => {
		const logits = rowsOf(floats("router.l.f32"), 200);
		expect(raw(joined(logits.map(routerWeights)))).toBe(raw(floats("router.w.f32")));
	});

	test("combine() adds in rank order, each step rounded", () => {
		const partials = [Float32Array.of(1, 2 ** 24), Float32Array.of(2 ** -24, 1), Float32Array.of(2 ** -24, 1)];
		expect([...combine(partials, Float32Array.of(1, 1, 1))]).toEqual([1, 2 ** 24]);
		expect([...combine(partials.toReversed(), Float32Array.of(1, 1, 1))]).toEqual([1 + 2 ** -23, 2 ** 24 + 2]);
	});
});
