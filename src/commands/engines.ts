import type { ExpertEngine } from "../experts/engine.ts";
import type { MatrixEngine } from "../experts/matrices.ts";
import type { EngineName } from "../experts/open-engine.ts";

export interface EngineChoice {
	readonly engine: EngineName;
	/** Rows are vectors of this many values. */
	readonly hidden: number;
	/** Compute threads. @default 1 */
	readonly threads?: number;
	/** Most bytes of experts held. @default unlimited */
	readonly memoryBytes?: number;
}

function optionsOf({ engine, hidden, threads, memoryBytes }: EngineChoice) {
	return { engine, hidden, threads: threads ?? 1, memoryBytes: memoryBytes ?? Number.MAX_SAFE_INTEGER };
}

/** An engine that computes on this thread: the backbone's, which waits for it anyway. */
export async function openEngine(choice: EngineChoice): Promise<ExpertEngine> {
	const experts = await import("../experts/open-engine.ts");
	return experts.openEngine(optionsOf(choice));
}

/** An engine in a thread of its own: the worker's, whose sockets must not wait. */
export async function openThreadedEngine(choice: EngineChoice): Promise<ExpertEngine> {
	const experts = await import("../experts/threaded-engine.ts");
	return experts.openThreadedEngine(optionsOf(choice));
}

/** The dense matrices of the same engine. */
export async function openMatrices({ threads }: EngineChoice): Promise<MatrixEngine> {
	const { openF32Matrices } = await import("../experts/f32/f32-matrices.ts");
	return openF32Matrices({ threads: threads ?? 1 });
}
