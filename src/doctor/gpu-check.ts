import { describeProof } from "../experts/describe-proof.ts";
import type { DeviceProof } from "../experts/engine.ts";
import type { Adapter } from "../experts/gpu/adapters.ts";
import type { Check } from "./check.ts";

/** Lists the graphics devices and proves the first that is no software: what `join --gpu` would use. */
export function gpuCheck(parts: {
	listAdapters(): Promise<readonly Adapter[]>;
	prove(adapter: Adapter): Promise<DeviceProof>;
}): Check {
	return {
		name: "gpu",
		async run() {
			const adapters = await parts.listAdapters();
			const device = adapters.find(({ software }) => !software);
			if (device) return { state: "ok", found: describeProof(await parts.prove(device)) };
			const named = adapters.map(({ id, name }) => `webgpu:${id} (${name}) computes on the CPU`);
			return { state: "ok", found: named.join("; ") || "no graphics device; the CPU computes the same bytes" };
		},
	};
}
