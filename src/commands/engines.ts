import { KvasirError } from "../errors.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import type { EngineName } from "../experts/open-engine.ts";

export interface EngineChoice {
	readonly engine: EngineName;
	/** `auto`, or a device such as `webgpu:ID`; undefined: the CPU. */
	readonly gpu: string | undefined;
	/** Rows are vectors of this many values. */
	readonly hidden: number;
	readonly threads: number;
	readonly memoryBytes: number;
}

/**
 * A worker's engine: in a thread of its own, as its sockets must not wait for it, or on a graphics device.
 * Throws `gpu_unavailable` with everything that was tried; it never falls back to the CPU.
 */
export async function openWorkerEngine({ gpu, ...choice }: EngineChoice): Promise<ExpertEngine> {
	if (gpu !== undefined) throw await gpuUnavailable(gpu);
	const { openThreadedEngine } = await import("../experts/threaded-engine.ts");
	return openThreadedEngine(choice);
}

async function gpuUnavailable(asked: string): Promise<KvasirError> {
	const tried: string[] = [];
	try {
		const { listAdapters } = await import("../experts/gpu/adapters.ts");
		const adapters = await listAdapters();
		tried.push(`webgpu: ${adapters.length === 0 ? "no adapter" : adapters.map(({ id }) => id).join(", ")}`);
	} catch (error) {
		tried.push(`webgpu: ${(error as Error).message}`);
	}
	return new KvasirError("gpu_unavailable", `Cannot use a GPU (${asked}): no device passed the self-check`, {
		hint: `Tried ${tried.join("; ")}. Without --gpu the CPU computes the same bytes`,
		facts: { asked, tried },
	});
}
