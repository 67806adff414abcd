import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { packagePath } from "../../io/built.ts";
import { openModel } from "../../model/open-model.ts";
import type { TensorType, WeightMatrix } from "../../model/weight-matrix.ts";
import { openCanonicalEngine } from "./canonical-engine.ts";

// The kernels against fixtures/reference/canonical-cases, made by two implementations that are not part of this project.

const folder = packagePath("fixtures/reference/canonical-cases/");
const bytes = (name: string) => new Uint8Array(readFileSync(folder + name));
const floats = (name: string) => new Float32Array(bytes(name).buffer);
const hex = (array: Float32Array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("hex");

interface Files {
	readonly rows: number;
	readonly x: string;
	readonly y: string;
}
type DotCase = Files & { type: TensorType; outputs: number; inputs: number; weights: string };
type ExpertCase = Files & { model: string; layer: number; expert: number };
const cases = JSON.parse(readFileSync(`${folder}index.json`, "utf8")) as { dot: DotCase[]; expert: ExpertCase[] };

const engine = await openCanonicalEngine({ memoryBytes: 16 * 1024 ** 2 });
afterAll(() => engine.close());

test.each(cases.dot)("a matrix group gives the bytes of $weights, row by row and all rows at once", async (given) => {
	const matrix: WeightMatrix = { ...given, bytes: bytes(given.weights) };
	const group = await engine.group(given.weights, [matrix]);
	const [x, y] = [floats(given.x), floats(given.y)];
	expect(hex((await group.multiply(x, given.rows))[0]!)).toBe(hex(y));
	for (let row = 0; row < given.rows; row++) {
		const [own] = await group.multiply(x.slice(row * given.inputs, (row + 1) * given.inputs), 1);
		expect(hex(own!)).toBe(hex(y.slice(row * given.outputs, (row + 1) * given.outputs)));
	}
	await group.close();
});

test.each(cases.expert)("an expert gives the bytes of layer $layer, expert $expert", async (given) => {
	const model = await openModel(packagePath(`fixtures/tiny/${given.model}`));
	await engine.load(given.layer, given.expert, await model.weights.expert(given.layer, given.expert));
	await model.weights.close();
	const rowIndex = Uint16Array.from({ length: given.rows }, (_, row) => row);
	const y = await engine.compute({
		layer: given.layer,
		rowCount: given.rows,
		rows: { dtype: "f32", values: floats(given.x) },
		rowIndex,
		expert: rowIndex.map(() => given.expert),
	});
	expect(hex(y)).toBe(hex(floats(given.y)));
});

test("exponentials() gives the bytes of exp32", async () => {
	expect(hex(await engine.exponentials(floats("exp32.z.f32")))).toBe(hex(floats("exp32.y.f32")));
});
