import { describe, expect, it } from "vitest";
import { runCli } from "../support/run-cli.ts";

// Figures belong to docs/performance.md; here only what has to be there.
describe.runIf(process.platform === "linux")("bench splice", () => {
	it("carries the same over every path, and keeps every idle link", async () => {
		const words = ["bench", "splice", "--gigabytes", "0.02", "--links", "40", "--watch", "1", "--json"];
		const result = await runCli(words, { deadlineMs: 120_000 });
		expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: "" });
		const { traffic, ratio, idle } = result.json().data;
		expect(traffic[0]).toMatchObject({ path: "gateway and hub", each: [expect.any(Number), expect.any(Number)] });
		expect(traffic[0].bytes).toBeGreaterThanOrEqual(20_000_000);
		if (traffic.length === 1) expect(ratio).toBe(null);
		else expect(traffic[1]).toMatchObject({ path: "nginx", bytes: traffic[0].bytes, each: [expect.any(Number)] });
		expect(idle).toMatchObject({ links: 40, lost: 0, carriers: [{ name: "gateway" }, { name: "hub" }] });
	});
});
