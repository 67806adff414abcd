import { expect, onTestFinished, test } from "vitest";
import { EngineRemote } from "../../test/support/engine-remote.ts";
import { packagePath } from "../io/built.ts";
import { systemClock } from "../io/clock.ts";
import { benchDecode } from "./decode.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");

test("measures local and remote steps, and the parts add up to the whole", async () => {
	const remote = await EngineRemote.open(tiny);
	onTestFinished(() => remote.close());
	const bench = await benchDecode({
		settings: { home: "", model: tiny, engine: "f32" },
		prompt: [267, 270, 262, 374, 394, 371, 257],
		tokens: 24,
		batches: [1, 4],
		remote,
		clock: systemClock,
	});
	expect(bench).toMatchObject({ engineClass: "f32", threads: 1, promptTokens: 7 });
	expect(bench.prefillTokensPerSecond).toBeGreaterThan(0);
	expect(bench.measurements.map(({ experts, batch }) => [experts, batch])).toEqual([
		["local", 1],
		["local", 4],
		["remote", 1],
		["remote", 4],
	]);
	for (const { experts, batch, msPerStep, tokensPerSecond, stepMs } of bench.measurements) {
		expect(tokensPerSecond).toBeCloseTo((1000 * batch) / msPerStep, 6);
		const parts = Object.values(stepMs).reduce((sum, ms) => sum + ms, 0);
		expect(parts).toBeGreaterThan(0.5 * msPerStep - 0.2);
		expect(parts).toBeLessThan(1.2 * msPerStep + 0.2);
		if (experts === "local") expect(stepMs.waitMs).toBe(0);
		else expect(stepMs.waitMs).toBeGreaterThan(0);
	}
});

test("an abort ends the measurement", async () => {
	const settings = { home: "", model: tiny, engine: "f32" } as const;
	const bench = benchDecode({ settings, prompt: [1], clock: systemClock, signal: AbortSignal.abort() });
	await expect(bench).rejects.toMatchObject({ name: "AbortError" });
});
