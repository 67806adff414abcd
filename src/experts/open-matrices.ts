import { KvasirError } from "../errors.ts";
import type { MatrixEngine } from "./matrices.ts";
import type { EngineOptions } from "./open-engine.ts";

/** Opens the dense side of an engine, on the calling thread; every engine's code is loaded only when it is asked for. */
export async function openMatrices({ engine, threads }: EngineOptions): Promise<MatrixEngine> {
	switch (engine) {
		case "f32": {
			const { openF32Matrices } = await import("./f32/f32-matrices.ts");
			return openF32Matrices({ threads });
		}
		case "canonical":
		case "onnx":
			throw new KvasirError("usage", `Cannot use the engine "${engine}": not built yet`);
	}
}
