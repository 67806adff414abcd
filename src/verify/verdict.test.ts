import { describe, expect, test } from "vitest";
import { exitCodeOf, type VerdictFacts, verdictOf } from "./verdict.ts";

const same: VerdictFacts = {
	complete: true,
	classes: ["canonical-1", "canonical-1"],
	tokens: { same: 8, total: 8 },
	argmax: { same: 13, total: 13 },
	logits: { identical: true, cosineMin: 1 },
	partials: { pairs: 104, identical: 104, tolerable: 104 },
};
const near = { logits: { identical: false, cosineMin: 0.995 }, partials: { pairs: 104, identical: 0, tolerable: 104 } };
const ort = ["canonical-1", "ort:1.30.0:cpu:x64"];

describe("verdictOf()", () => {
	test.each<[string, Partial<VerdictFacts>, string]>([
		["all bytes equal", {}, "identical"],
		["f32 on both sides", { classes: ["f32", "f32"] }, "identical"],
		["a worker of a tolerance class, even when its bytes are equal", { classes: ort }, "equivalent"],
		["a worker of another exact class", { classes: ["canonical-1", "f32"], ...near }, "equivalent"],
		["a tolerance class within its tolerance", { classes: ort, ...near }, "equivalent"],
		["canonical partials that are only near", near, "different"],
		[
			"one wrong partial that changed no logit",
			{ partials: { pairs: 104, identical: 103, tolerable: 103 } },
			"different",
		],
		["another token", { classes: ort, ...near, tokens: { same: 7, total: 8 } }, "different"],
		["a cosine too low", { classes: ort, ...near, logits: { identical: false, cosineMin: 0.98 } }, "different"],
		["not everything was answered", { complete: false }, "incomplete"],
		["not everything was answered, and something is wrong", { complete: false, ...near }, "different"],
	])("%s: %s", (_, facts, expected) => {
		expect(verdictOf({ ...same, ...facts })).toBe(expected);
	});
});

describe("exitCodeOf()", () => {
	test.each([
		["identical", 0, 0],
		["equivalent", 0, 3],
		["incomplete", 1, 3],
		["different", 3, 3],
	] as const)("%s: %i, strictly %i", (verdict, plain, strict) => {
		expect(exitCodeOf(verdict)).toBe(plain);
		expect(exitCodeOf(verdict, { strict: true })).toBe(strict);
	});
});
