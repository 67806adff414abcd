import { expect, it } from "vitest";
import { parseAdapterList } from "./adapters.ts";

it("reads Dawn's list: one id for each name, software told apart, the null backend left out", () => {
	const listing = `no suitable backends found
Available adapters:
 * backend: 'vulkan', name: 'NVIDIA GeForce RTX 4090'
 * backend: 'vulkan', name: 'NVIDIA GeForce RTX 4090'
 * backend: 'vulkan', name: 'llvmpipe (LLVM 15.0.6, 256 bits)'
 * backend: 'null', name: 'Null backend'`;
	expect(parseAdapterList(listing)).toEqual([
		{ id: "vulkan-nvidia-geforce-rtx-4090", name: "NVIDIA GeForce RTX 4090", backend: "vulkan", software: false },
		{
			id: "vulkan-llvmpipe-llvm-15-0-6-256-bits",
			name: "llvmpipe (LLVM 15.0.6, 256 bits)",
			backend: "vulkan",
			software: true,
		},
	]);
	expect(parseAdapterList("no suitable backends found")).toEqual([]);
});
