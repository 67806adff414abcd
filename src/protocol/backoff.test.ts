import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { noFailures, redialDelay } from "./backoff.ts";

const always = (value: number) => ({ ...seededRandom(1), uniform: () => value });

describe("redialDelay()", () => {
	it("doubles from 5 s to 60 s", () => {
		const ceilings: number[] = [];
		let backoff = noFailures;
		for (let i = 0; i < 6; i++) {
			const { delayMs, next } = redialDelay(backoff, always(1));
			ceilings.push(delayMs);
			backoff = next;
		}
		expect(ceilings).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
	});

	it("uses the whole range, so that a thousand workers do not return at once", () => {
		const random = seededRandom(5);
		const delays = Array.from({ length: 1000 }, () => redialDelay({ failures: 9 }, random).delayMs);
		expect(Math.min(...delays)).toBeLessThan(600);
		expect(Math.max(...delays)).toBeGreaterThan(59_400);
	});

	it("never returns before Retry-After, nor gives up", () => {
		expect(redialDelay(noFailures, always(0), 30_000).delayMs).toBe(30_000);
		expect(redialDelay({ failures: 100_000 }, always(1)).delayMs).toBe(60_000);
	});
});
