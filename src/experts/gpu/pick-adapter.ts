import type { Clock } from "../../io/clock.ts";
import type { Adapter } from "./adapters.ts";
import { askAdapters } from "./ask-adapters.ts";
import { adaptersToTry, gpuUnavailable, parseGpuChoice } from "./choose-adapter.ts";

/** The adapter that `--gpu[=auto|webgpu|webgpu:ID]` means. Throws `usage`, or `gpu_unavailable` with what there is. */
export async function pickAdapter(text: string, clock: Clock): Promise<Adapter> {
	const { provider, id } = parseGpuChoice(text);
	if (provider !== "webgpu") throw gpuUnavailable(text, [`${provider}: canonical-1 needs WebGPU`]);
	const { candidates, refused } = adaptersToTry(await askAdapters(clock), id);
	if (candidates[0]) return candidates[0];
	throw gpuUnavailable(text || "auto", refused);
}
