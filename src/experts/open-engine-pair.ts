import type { ExpertEngine } from "./engine.ts";
import type { MatrixEngine } from "./matrices.ts";
import type { EngineOptions } from "./open-engine.ts";

/** Both sides of an engine, as a decode needs them. */
export interface EnginePair {
	readonly experts: ExpertEngine;
	readonly matrices: MatrixEngine;
	close(): Promise<void>;
}

/** Opens both sides of an engine on the calling thread; every engine's code is loaded only when it is asked for. */
export async function openEnginePair(options: EngineOptions): Promise<EnginePair> {
	const { engine, threads, memoryBytes } = options;
	switch (engine) {
		case "f32": {
			const { openF32Engine } = await import("./f32/f32-engine.ts");
			const { openF32Matrices } = await import("./f32/f32-matrices.ts");
			const experts = await openF32Engine(options);
			return { experts, matrices: await openF32Matrices({ threads }), close: () => experts.close() };
		}
		case "canonical": {
			const { openCanonicalEngine } = await import("./canonical/canonical-engine.ts");
			const both = await openCanonicalEngine({ threads, memoryBytes });
			return { experts: both, matrices: both, close: () => both.close() };
		}
		case "onnx": {
			const { openOnnxEngine } = await import("./onnx/onnx-engine.ts");
			const { openOnnxMatrices } = await import("./onnx/onnx-matrices.ts");
			const experts = await openOnnxEngine({ ...options, device: options.device ?? "cpu" });
			return { experts, matrices: await openOnnxMatrices({ threads }), close: () => experts.close() };
		}
	}
}
