import { expect, it } from "vitest";
import { GroupCommit } from "./group-commit.ts";

it("GroupCommit hands on together what arrives together, never more than its bound, answers in order", async () => {
	const sizes: number[] = [];
	const group = new GroupCommit<number, number>(async (items) => {
		sizes.push(items.length);
		return items.map((item) => item * 2);
	}, 4);
	const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => group.add(i)));
	expect(answers).toEqual(Array.from({ length: 10 }, (_, i) => i * 2));
	expect(sizes).toEqual([4, 4, 2]);
	expect(await group.add(21)).toBe(42);
	await group.idle();
});

it("GroupCommit fails the item that cannot be committed, and no other", async () => {
	const group = new GroupCommit<string, string>(async (items) => {
		if (items.includes("bad")) throw new Error("constraint");
		return items.map((item) => `${item} committed`);
	}, 100);
	const outcomes = await Promise.allSettled(["a", "bad", "b"].map((item) => group.add(item)));
	expect(outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : "failed"))).toEqual([
		"a committed",
		"failed",
		"b committed",
	]);
	await group.idle();
});
