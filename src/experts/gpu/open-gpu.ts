import { KvasirError } from "../../errors.ts";
import type { ExpertEngine } from "../engine.ts";
import { askAdapters } from "./ask-adapters.ts";
import { adaptersToTry, gpuUnavailable } from "./choose-adapter.ts";
import { type GpuHostOptions, openGpuEngine } from "./gpu-host.ts";

/** Device memory for experts where nobody said how much: WebGPU does not tell what a device has. */
export const deviceMemoryBytes = 4 * 2 ** 30;

/**
 * Opens canonical-1 on the first device that passes its self-check.
 * Throws `gpu_unavailable` with everything that was tried; it never falls back to the CPU.
 *
 * @param id an adapter's id, the only way to a software adapter; null: any device
 */
export async function openFirstGpu(id: string | null, options: Omit<GpuHostOptions, "adapter">): Promise<ExpertEngine> {
	const asked = id === null ? "webgpu" : `webgpu:${id}`;
	const adapters = await askAdapters(options.clock).catch((error: Error) => {
		throw gpuUnavailable(asked, [`webgpu: ${error.message}`]);
	});
	const { candidates, refused } = adaptersToTry(adapters, id);
	const tried = [...refused];
	for (const { id: adapter, name } of candidates) {
		try {
			return await openGpuEngine({ ...options, adapter });
		} catch (error) {
			if (!(error instanceof KvasirError)) throw error;
			tried.push(`webgpu:${adapter} (${name}): ${error.message}`);
		}
	}
	throw gpuUnavailable(asked, tried);
}
