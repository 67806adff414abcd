import { expect, it } from "vitest";
import { adapterId, hasDevice } from "../../test/support/device.ts";
import { systemClock } from "../io/clock.ts";
import { benchGpu, type GpuLine } from "./engine-gpu.ts";

it.skipIf(!hasDevice)("measures experts on the device and on one core, in one run", { timeout: 300_000 }, async () => {
	const told: GpuLine[] = [];
	const { adapter, lines } = await benchGpu({
		adapter: adapterId,
		types: ["Q4_K"],
		rows: [1, 3],
		shape: [256, 256],
		experts: 2,
		streamedBytes: 2 ** 20,
		lineMs: 1,
		clock: systemClock,
		onLine: (line) => told.push(line),
	});
	expect(adapter.id).toBe(adapterId);
	expect(lines).toEqual(told);
	expect(lines.map(({ type, experts, rows }) => ({ type, experts, rows }))).toEqual([
		{ type: "Q4_K", experts: 2, rows: 1 },
		{ type: "Q4_K", experts: 2, rows: 3 },
	]);
	for (const { rows, device, cpu } of lines) {
		for (const { ms, pairsPerSecond, gigabytesPerSecond } of [device, cpu]) {
			expect(pairsPerSecond).toBeCloseTo((2000 * rows) / ms, 3);
			expect(gigabytesPerSecond).toBeCloseTo((2 * 3 * 256 * 144) / ms / 1e6, 6);
		}
	}
});
