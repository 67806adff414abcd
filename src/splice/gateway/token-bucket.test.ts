import { describe, expect, it } from "vitest";
import { fakeClock } from "../../../test/support/fake-clock.ts";
import { createCounted } from "./counted.ts";
import { createKeyedBuckets, createTokenBucket } from "./token-bucket.ts";

describe("createTokenBucket()", () => {
	it("gives its burst, then its rate, and never more than its burst after a long quiet", async () => {
		const clock = fakeClock();
		const bucket = createTokenBucket({ perSecond: 2, burst: 3 }, clock);
		const taken = () => Array.from({ length: 10 }, () => bucket.take()).filter(Boolean).length;
		expect(taken()).toBe(3);
		await clock.advance(1_000);
		expect(taken()).toBe(2);
		await clock.advance(3_600_000);
		expect(taken()).toBe(3);
	});

	it("adds up fractions: asked often, it still gives its rate", async () => {
		const clock = fakeClock();
		const bucket = createTokenBucket({ perSecond: 1, burst: 1 }, clock);
		let taken = 0;
		for (let ms = 0; ms <= 10_000; ms += 100) {
			if (bucket.take()) taken += 1;
			await clock.advance(100);
		}
		expect(taken).toBeGreaterThanOrEqual(10);
		expect(taken).toBeLessThanOrEqual(11);
	});
});

describe("createKeyedBuckets()", () => {
	it("keeps names apart, and forgets the longest quiet one beyond its bound", () => {
		const buckets = createKeyedBuckets({ perSecond: 0, burst: 1 }, fakeClock(), 2);
		expect([buckets.take("a"), buckets.take("a"), buckets.take("b")]).toEqual([true, false, true]);
		buckets.take("a");
		expect(buckets.take("c")).toBe(true);
		expect(buckets.size).toBe(2);
		// b was quiet for longest: forgotten, so full again; a is still empty.
		expect([buckets.take("a"), buckets.take("b")]).toEqual([false, true]);
	});
});

describe("createCounted()", () => {
	it("limits each name, and takes each place back once", () => {
		const counted = createCounted(2);
		const [first, second] = [counted.take("a"), counted.take("a")];
		expect(counted.take("a")).toBeNull();
		expect(counted.take("b")).not.toBeNull();
		first!();
		first!();
		expect([counted.of("a"), counted.of("b"), counted.total]).toEqual([1, 1, 2]);
		second!();
		expect(counted.of("a")).toBe(0);
	});
});
