import { expect, it } from "vitest";
import type { Adapter } from "../experts/gpu/adapters.ts";
import { gpuCheck } from "./gpu-check.ts";

const software: Adapter = { id: "vulkan-swift", name: "Swift", backend: "vulkan", software: true };
const card: Adapter = { id: "vulkan-card", name: "Card", backend: "vulkan", software: false };
const signal = new AbortController().signal;

function check(adapters: Adapter[]) {
	return gpuCheck({
		listAdapters: async () => adapters,
		prove: async ({ id, name }) => ({
			id: `webgpu:${id}`,
			name,
			selfCheck: new Uint8Array(32),
			selfCheckMs: 912,
			deviceMs: 0.42,
			cpuMs: 9.1,
			rows: 16,
		}),
	}).run(signal);
}

it("proves the first device that is no software", async () => {
	expect(await check([software, card])).toEqual({
		state: "ok",
		found:
			"webgpu:vulkan-card (Card): self-check passed in 912 ms; 16 rows of an expert in 420 us, one CPU core 9.1 ms",
	});
});

it("a machine without a device is healthy; software is named, not used", async () => {
	expect(await check([])).toMatchObject({ state: "ok", found: expect.stringContaining("no graphics device") });
	expect(await check([software])).toEqual({ state: "ok", found: "webgpu:vulkan-swift (Swift) computes on the CPU" });
});
