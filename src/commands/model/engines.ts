import { KvasirError } from "../../errors.ts";
import type { ExpertEngine } from "../../experts/engine.ts";
import type { EngineName } from "../../experts/open-engine.ts";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { WeightSource } from "../../model/model.ts";

export interface EngineChoice {
	readonly engine: EngineName;
	/** `auto`, or a device such as `webgpu:ID`; undefined: the CPU. */
	readonly gpu: string | undefined;
	/** Rows are vectors of this many values. */
	readonly hidden: number;
	/** The model's experts: a device is tried on one. */
	readonly expert: WeightSource["expert"];
	readonly threads: number;
	readonly memoryBytes: number;
	/** This machine's CPU. */
	readonly device: string;
	readonly clock: Clock;
	readonly log: Logger;
}

/**
 * A worker's engine: in a thread of its own, as its sockets must not wait for it, or on a graphics device, in a process of its own.
 * Throws `gpu_unavailable` with everything that was tried; it never falls back to the CPU.
 */
export async function openWorkerEngine(choice: EngineChoice): Promise<ExpertEngine> {
	const { engine, gpu, hidden, expert, threads, memoryBytes, device, clock, log } = choice;
	if (gpu === undefined) {
		const { openThreadedEngine } = await import("../../experts/threaded-engine.ts");
		return openThreadedEngine({ engine, hidden, threads, memoryBytes, device });
	}
	const { openFirstGpu } = await import("../../experts/gpu/open-gpu.ts");
	const { parseGpuChoice } = await import("../../experts/gpu/choose-adapter.ts");
	if (engine === "f32") throw new KvasirError("usage", "Cannot use the engine f32 on a GPU: canonical and onnx can");
	return openFirstGpu(parseGpuChoice(gpu), {
		engine,
		hidden,
		memoryBytes,
		source: expert,
		clock,
		log,
	});
}
