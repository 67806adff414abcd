import { expect, test } from "vitest";
import { systemClock } from "../io/clock.ts";
import { benchEngine, benchedEngines, type EngineLine } from "./engine.ts";

test("benchEngine() measures all engines on each line and relates them to onnxruntime at fp32 accuracy", async () => {
	const told: EngineLine[] = [];
	const { lines } = await benchEngine({
		types: ["Q4_K", "Q6_K"],
		rows: [1, 5],
		shapes: [[1024, 3072]],
		lineMs: 20,
		clock: systemClock,
		onLine: (line) => told.push(line),
	});
	expect(told).toEqual(lines);
	expect(lines.map(({ type, rows }) => [type, rows])).toEqual([
		["Q4_K", 1],
		["Q4_K", 5],
		["Q6_K", 1],
		["Q6_K", 5],
	]);
	for (const { engines, rows } of lines) {
		expect(Object.keys(engines)).toEqual([...benchedEngines]);
		const exact = engines["onnx fp32"]!;
		expect(exact.ratio).toBe(1);
		for (const { ms, gigaflops, ratio } of Object.values(engines)) {
			expect(gigaflops).toBeCloseTo((2 * 1024 * 3072 * rows) / ms / 1e6, 6);
			expect(ratio).toBeCloseTo(exact.ms / ms, 6);
		}
	}
});

test("benchEngine() stops when the signal aborts", async () => {
	const bench = benchEngine({ types: ["Q8_0"], shapes: [[64, 64]], clock: systemClock, signal: AbortSignal.abort() });
	await expect(bench).rejects.toThrow(/abort/);
});
