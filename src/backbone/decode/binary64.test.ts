import { expect, test } from "vitest";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { exp64 } from "../../experts/exp64.ts";
import { compileMixers, instantiateMixers } from "./mixer-module.ts";

// The kernel's elementary functions against Math's, which are within an ulp of the truth.

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
const kernel = instantiateMixers(compileMixers(), memory);
const { uniform } = seededRandom(20261129);
const samples = Array.from({ length: 20_000 }, uniform);

const view = new DataView(new ArrayBuffer(8));
function ulpOf(value: number): number {
	view.setFloat64(0, Math.abs(value));
	view.setBigUint64(0, view.getBigUint64(0) + 1n);
	return view.getFloat64(0) - Math.abs(value);
}

function mostUlps(inputs: readonly number[], ours: (x: number) => number, theirs: (x: number) => number): number {
	return inputs.map((x) => Math.abs(ours(x) - theirs(x)) / ulpOf(theirs(x))).reduce((a, b) => Math.max(a, b), 0);
}

test("exponential has the bits of exp64", () => {
	for (const u of [0, ...samples]) {
		const z = (u - 0.5) * 1600;
		expect(kernel.exponential(z)).toBe(exp64(z));
		expect(kernel.exponential(z / 1000)).toBe(exp64(z / 1000));
	}
});

test("sine and cosine of angles up to 2^20 are within 2 ulp", () => {
	const quarters = samples.slice(0, 2000).map((u) => Math.floor(u * 667_000) * (Math.PI / 2));
	const whole = samples.slice(0, 2000).map((u) => Math.floor(u * 2 ** 20));
	const angles = [0, 1e-300, 1e-9, Math.PI / 4, ...samples, ...samples.map((u) => u * 2 ** 20), ...quarters, ...whole];
	expect(mostUlps(angles, kernel.sine, Math.sin)).toBeLessThanOrEqual(2);
	expect(mostUlps(angles, kernel.cosine, Math.cos)).toBeLessThanOrEqual(2);
});

test("logarithm, softplus and sigmoid are within 4 ulp, power within what its exponent loses", () => {
	const positive = samples.flatMap((u) => [u + 1e-300, u * 1e7, 0.99 + u / 50, 2 ** (u * 2000 - 1000)]);
	expect(mostUlps(positive, kernel.logarithm, Math.log)).toBeLessThanOrEqual(4);
	const signed = samples.flatMap((u) => [(u - 0.5) * 100, (u - 0.5) * 4]);
	expect(mostUlps(signed, kernel.sigmoid, (x) => 1 / (1 + Math.exp(-x)))).toBeLessThanOrEqual(4);
	expect(mostUlps(signed, kernel.softplus, (x) => (x > 20 ? x : Math.log1p(Math.exp(x))))).toBeLessThanOrEqual(4);
	for (const u of samples) {
		const expected = 1e7 ** -u;
		expect(Math.abs(kernel.power(1e7, -u) - expected) / expected).toBeLessThan(1e-14);
	}
});
