import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitExperts, splitLayers } from "./expert-split.ts";

describe("splitExperts()", () => {
	it("cuts 16 experts in 3", () => expect(splitExperts(16, 3)).toEqual(["all:0-5", "all:6-10", "all:11-15"]));

	it("covers every expert once, in runs that differ by one at most", () => {
		fc.assert(
			fc.property(fc.integer({ min: 1, max: 512 }), fc.integer({ min: 1, max: 16 }), (experts, parts) => {
				const runs = splitExperts(experts, parts).map((hold) => hold.slice(4).split("-").map(Number));
				expect(runs).toHaveLength(parts);
				let next = 0;
				for (const [first, last] of runs.slice(0, experts)) {
					expect(first).toBe(next);
					next = last! + 1;
				}
				expect(next).toBe(experts);
				const sizes = runs.map(([first, last]) => last! - first! + 1);
				expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
			}),
		);
	});
});

describe("splitLayers()", () => {
	it("deals 4 layers out to 3", () => expect(splitLayers(4, 3)).toEqual(["0,3:all", "1:all", "2:all"]));

	it("gives everybody everything where there are too few", () =>
		expect(splitLayers(1, 2)).toEqual(["all:all", "all:all"]));
});
