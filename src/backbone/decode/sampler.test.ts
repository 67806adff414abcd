import fc from "fast-check";
import { expect, test } from "vitest";
import { argmax, checkSampling, greedy, sample, uniform } from "./sampler.ts";

const logits = Float32Array.of(1, 4, 2, 4, -3);

test("greedy takes the largest logit, the lowest id of equals", () => {
	expect(sample(logits, greedy, 0)).toBe(1);
	expect(argmax(Float32Array.of(-1, -1))).toBe(0);
	expect(sample(logits, { temperature: 1, topK: 1 }, 3)).toBe(1);
});

test("the same seed gives the same tokens, another seed others", () => {
	const draw = (seed: number) => Array.from({ length: 40 }, (_, i) => sample(logits, { temperature: 2, seed }, i));
	expect(draw(7)).toEqual(draw(7));
	expect(draw(7)).not.toEqual(draw(8));
});

test("uniform() is splitmix64: the first outputs for seed 1234567 are the published ones", () => {
	// 6457827717110365317 and 3203168211198807973, of the reference implementation
	expect(uniform(1234567, 0)).toBe(Number(6457827717110365317n >> 11n) / 2 ** 53);
	expect(uniform(1234567, 1)).toBe(Number(3203168211198807973n >> 11n) / 2 ** 53);
});

test("draws follow the softmax", () => {
	const counts = new Float64Array(3);
	const draws = 20_000;
	for (let i = 0; i < draws; i++) counts[sample(Float32Array.of(0, 1, 2), { temperature: 1, seed: 5 }, i)]! += 1;
	const total = 1 + Math.E + Math.E ** 2;
	for (const [token, share] of [1 / total, Math.E / total, Math.E ** 2 / total].entries()) {
		expect(Math.abs(counts[token]! / draws - share)).toBeLessThan(0.015);
	}
});

test("top-k and top-p leave the others out", () => {
	const row = fc.array(fc.float({ noNaN: true, min: -20, max: 20 }), { minLength: 2, maxLength: 30 });
	const options = fc.record({
		temperature: fc.double({ min: 0.1, max: 5, noNaN: true }),
		topK: fc.integer({ min: 1, max: 30 }),
		topP: fc.double({ min: 0.05, max: 1, noNaN: true }),
		seed: fc.nat(),
	});
	fc.assert(
		fc.property(row, options, (list, { temperature, topK, topP, seed }) => {
			const values = Float32Array.from(list);
			const order = [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b).slice(0, topK);
			const masses = order.map((id) => Math.exp((values[id]! - values[order[0]!]!) / temperature));
			const total = masses.reduce((a, b) => a + b, 0);
			let reached = 0;
			const kept = order.filter((_, rank) => {
				const open = rank === 0 || reached < topP * total * (1 - 1e-9);
				reached += masses[rank]!;
				return open;
			});
			expect(kept).toContain(sample(values, { temperature, topK, topP, seed }, 0));
		}),
	);
});

test.each([
	{ temperature: -1 },
	{ temperature: Number.NaN },
	{ temperature: 1, topK: 1.5 },
	{ temperature: 1, topP: 0 },
	{ temperature: 1, topP: 1.1 },
	{ temperature: 1, seed: 2 ** 60 },
])("refuses %o", (sampling) => {
	expect(() => checkSampling(sampling)).toThrow(expect.objectContaining({ code: "usage" }));
});
