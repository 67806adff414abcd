import { KvasirError } from "../../errors.ts";
import type { ExpertEngine } from "../engine.ts";
import type { Adapter } from "./adapters.ts";
import { askAdapters } from "./ask-adapters.ts";
import { adaptersToTry, type GpuChoice, gpuUnavailable } from "./choose-adapter.ts";
import type { DeviceOptions } from "./device-options.ts";
import { type GpuHostOptions, openGpuEngine } from "./gpu-host.ts";

export interface OpenGpuOptions extends Omit<GpuHostOptions, "device"> {
	/** canonical: the same bytes as everywhere; onnx: onnxruntime's own kernels, a class with a tolerance. */
	readonly engine: "canonical" | "onnx";
	/** Rows are vectors of this many values. */
	readonly hidden: number;
	readonly memoryBytes: number;
}

/**
 * Opens an engine on the first device that passes its check. Never falls back to the CPU.
 * Throws `usage` for a provider that the engine does not have, `gpu_unavailable` with everything that was tried.
 */
export async function openFirstGpu(choice: GpuChoice, options: OpenGpuOptions): Promise<ExpertEngine> {
	const { provider, id } = choice;
	const asked = id === null ? provider : `${provider}:${id}`;
	if (options.engine === "canonical" && provider !== "webgpu") {
		throw new KvasirError("usage", `Cannot compute on ${provider}: the canonical engine needs WebGPU`, {
			hint: `Use --gpu=webgpu for the same bytes as everywhere, or --gpu=${provider} --engine onnx`,
		});
	}
	const tried: string[] = [];
	for (const device of await devicesToTry(choice, options, tried)) {
		try {
			return await openGpuEngine({ ...options, device });
		} catch (error) {
			if (!(error instanceof KvasirError)) throw error;
			tried.push(`${device.id}: ${error.message}${error.hint ? ` (${error.hint})` : ""}`);
		}
	}
	throw gpuUnavailable(asked, tried);
}

async function devicesToTry(
	{ provider, id }: GpuChoice,
	{ engine, hidden, memoryBytes, clock }: OpenGpuOptions,
	tried: string[],
): Promise<DeviceOptions[]> {
	if (provider !== "webgpu") return [{ engine: "onnx", provider, id: provider, name: provider, hidden, memoryBytes }];
	let adapters: readonly Adapter[] = [];
	try {
		adapters = await askAdapters(clock);
	} catch (error) {
		tried.push(`webgpu: ${(error as Error).message}`);
		return [];
	}
	const { candidates, refused } = adaptersToTry(adapters, id);
	tried.push(...refused);
	if (engine === "canonical") {
		return candidates.map((adapter) => ({ engine, adapter: adapter.id, id: `webgpu:${adapter.id}`, memoryBytes }));
	}
	// onnxruntime cannot be told which adapter to take: it takes the first.
	const [first] = adapters;
	for (const { id } of candidates) {
		if (id !== first!.id) tried.push(`webgpu:${id}: onnxruntime takes the first adapter, ${first!.id}`);
	}
	return candidates
		.filter(({ id }) => id === first!.id)
		.map(({ id, name }) => ({ engine, provider, id: `webgpu:${id}`, name, hidden, memoryBytes }));
}
