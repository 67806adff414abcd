import { expect, it } from "vitest";
import { cpuMsOf, processUse, residentBytesOf } from "./process-use.ts";

it("reads processor time behind a name that looks like fields, and resident memory", () => {
	const stat = "42 (a) b (c 9 9) S 1 42 42 0 -1 4194560 10 20 30 40 150 25 7 8 20 0 11 0 100 1000 200";
	expect(cpuMsOf(stat)).toBe(1750);
	expect(residentBytesOf("Name:\tnode\nVmHWM:\t  9000 kB\nVmRSS:\t  2048 kB\nThreads:\t11\n")).toBe(2 * 1024 * 1024);
});

it.runIf(process.platform === "linux")("sees this process work", async () => {
	const before = await processUse(process.pid);
	const until = process.cpuUsage().user + 100_000;
	while (process.cpuUsage().user < until);
	const after = await processUse(process.pid);
	expect(after.cpuMs - before.cpuMs).toBeGreaterThanOrEqual(70);
	expect(after.residentBytes).toBeGreaterThan(10_000_000);
});

it("says what it cannot read", async () => {
	await expect(processUse(2 ** 30)).rejects.toMatchObject({ code: "failed", hint: expect.stringContaining("Linux") });
});
