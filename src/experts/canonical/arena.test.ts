import { expect, test } from "vitest";
import { packagePath } from "../../io/built.ts";
import { openModel } from "../../model/open-model.ts";
import { type TensorType, tensorTypes } from "../../model/weight-matrix.ts";
import { multiplyRow } from "../reference.ts";
import { Arena } from "./arena.ts";
import { compileKernel, instantiateKernel } from "./kernel-module.ts";
import { packedBytes } from "./layout.ts";

const megabyte = 1024 ** 2;
const model = await openModel(packagePath("fixtures/reference/kvasir-tiny-35moe-UD-Q4_K_XL.gguf"));
const { gate } = await model.weights.expert(1, 0);
await model.weights.close();

const row = Float32Array.from({ length: gate.inputs }, (_, i) => 2 * Math.sin(i * 1.7 + 1));
const bits = (values: Float32Array) => new Uint32Array(values.buffer, values.byteOffset, values.length);

test("address space above 2 GiB is used like any other", async () => {
	const gibibyte = 1024 ** 3;
	const arena = new Arena(6.5 * gibibyte, 4 * megabyte);
	const places = [2.5, 2.5, 0.4, 0.4, 0.3].map((size) => arena.allocate(size * gibibyte));
	expect(places.map(({ memory }) => memory)).toEqual([0, 1, 0, 1, 2]);
	expect(() => arena.allocate(gibibyte)).toThrow(/no room/);

	const kernel = instantiateKernel(compileKernel(), arena.memories[0]!);
	const high = 3 * gibibyte - megabyte;
	kernel.bytes.set(gate.bytes, high);
	const [rowBytes, panels] = [gate.bytes.length / gate.outputs, 2.5 * gibibyte];
	expect(kernel.call.pack(tensorTypes[gate.type], high, rowBytes, gate.inputs, gate.outputs, panels, 0)).toBe(0);
	kernel.floats.set(row, high / 4);
	expect(kernel.call.quantise(high, gate.inputs, high + 4 * gate.inputs, 640)).toBe(1);
	kernel.call.multiply(
		tensorTypes[gate.type],
		panels,
		high + 4 * gate.inputs,
		1,
		gate.inputs,
		gate.outputs / 8,
		high,
		0,
		0,
	);
	const y = kernel.floats.slice(high / 4, high / 4 + gate.outputs);
	expect(bits(y)).toEqual(bits(multiplyRow(gate, row)));
});

test.each(Object.entries(tensorTypes) as [TensorType, number][])(
	"%s takes as many bytes as the kernel lays out",
	(type, number) => {
		const arena = new Arena(megabyte, megabyte);
		const { call } = instantiateKernel(compileKernel(), arena.memories[0]!);
		for (const inputs of [256, 768, 3072]) {
			const matrix = { type, inputs, outputs: 9, bytes: new Uint8Array(0) };
			expect(packedBytes(matrix)).toBe(2 * call.panelBytes(number, inputs));
		}
	},
);
