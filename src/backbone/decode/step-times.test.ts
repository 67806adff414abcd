import { expect, test } from "vitest";
import { Stopwatch } from "./step-times.ts";

test("the times of steps that overlap add up to the time in which one was under way", () => {
	let now = 0;
	const stopwatch = new Stopwatch({ monotonic: () => now });
	now = 5; // nothing is under way
	stopwatch.start();
	now = 7;
	stopwatch.lap("matricesMs");
	now = 10; // the first waits, when a second begins
	stopwatch.start();
	now = 11;
	stopwatch.lap("mixerMs");
	stopwatch.stop();
	now = 20;
	stopwatch.lap("waitMs");
	stopwatch.stop();
	now = 50;
	stopwatch.start();
	now = 51;
	stopwatch.lap("headMs");
	expect(stopwatch.times).toMatchObject({ matricesMs: 2, mixerMs: 4, waitMs: 9, headMs: 1 });
	expect(Object.values(stopwatch.times).reduce((sum, ms) => sum + ms, 0)).toBe(16);
});
