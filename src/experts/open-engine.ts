import type { ExpertEngine } from "./engine.ts";

/** The engines a user can name (`--engine`). */
export const engineNames = ["canonical", "f32", "onnx"] as const;
export type EngineName = (typeof engineNames)[number];

export interface EngineOptions {
	readonly engine: EngineName;
	/** Rows are vectors of this many values. */
	readonly hidden: number;
	/** Compute threads; 1 unless told. */
	readonly threads: number;
	/** Most bytes the engine may hold in experts. */
	readonly memoryBytes: number;
	/** The machine's CPU, as the class of engine onnx names it. */
	readonly device?: string;
}

/** Opens an engine that computes on the calling thread; every engine's code is loaded only when it is asked for. */
export async function openEngine(options: EngineOptions): Promise<ExpertEngine> {
	switch (options.engine) {
		case "f32": {
			const { openF32Engine } = await import("./f32/f32-engine.ts");
			return openF32Engine(options);
		}
		case "canonical": {
			const { openCanonicalEngine } = await import("./canonical/canonical-engine.ts");
			return openCanonicalEngine(options);
		}
		case "onnx": {
			const { openOnnxEngine } = await import("./onnx/onnx-engine.ts");
			return openOnnxEngine({ ...options, device: options.device ?? "cpu" });
		}
	}
}
