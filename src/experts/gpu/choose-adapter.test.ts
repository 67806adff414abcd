import { describe, expect, it } from "vitest";
import { adaptersToTry, gpuUnavailable, parseGpuChoice } from "./choose-adapter.ts";

const card = { id: "vulkan-card", name: "Card", backend: "vulkan", software: false };
const swiftshader = { id: "vulkan-swiftshader", name: "SwiftShader", backend: "vulkan", software: true };

describe("parseGpuChoice()", () => {
	it("reads what the command line takes", () => {
		expect(parseGpuChoice("auto")).toEqual({ provider: "webgpu", id: null });
		expect(parseGpuChoice("")).toEqual({ provider: "webgpu", id: null });
		expect(parseGpuChoice("webgpu")).toEqual({ provider: "webgpu", id: null });
		expect(parseGpuChoice("webgpu:vulkan-card")).toEqual({ provider: "webgpu", id: "vulkan-card" });
		expect(parseGpuChoice("cuda")).toEqual({ provider: "cuda", id: null });
	});

	it.each(["opencl", "auto:0", "webgpu:", "cuda:0"])("refuses %j", (text) => {
		expect(() => parseGpuChoice(text)).toThrow(`Cannot use the device "${text}"`);
	});
});

describe("adaptersToTry()", () => {
	it("never takes a software adapter that was not named", () => {
		expect(adaptersToTry([swiftshader, card], null)).toEqual({
			candidates: [card],
			refused: ["webgpu:vulkan-swiftshader (SwiftShader): computes on the CPU, used only when named"],
		});
		expect(adaptersToTry([swiftshader, card], swiftshader.id)).toEqual({ candidates: [swiftshader], refused: [] });
	});

	it("says what there is instead of an adapter that is not there", () => {
		const { candidates, refused } = adaptersToTry([card], "vulkan-other");
		expect(candidates).toEqual([]);
		expect(refused).toEqual(["webgpu:vulkan-other: not there; there is: vulkan-card"]);
	});
});

it("a machine without a device ends with exit code 7 and what was tried", () => {
	const error = gpuUnavailable("auto", []);
	expect(error.exitCode).toBe(7);
	expect(error.message).toContain("no adapter");
	expect(gpuUnavailable("cuda", ["cuda: no libraries"]).message).toBe("Cannot use a GPU (cuda): cuda: no libraries");
});
