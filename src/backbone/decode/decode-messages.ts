import type { PlainError } from "../../errors.ts";
import type { EngineName } from "../../experts/open-engine.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { RemoteAnswer, RemoteRequest } from "../remote.ts";
import type { GenerationRequest } from "./generation.ts";
import type { PairBatch } from "./local-experts.ts";
import type { PartialsReport } from "./partials-check.ts";
import type { RemoteCounts } from "./remote-layers.ts";
import type { SchedulerOptions } from "./scheduler.ts";
import type { StepTimes } from "./step-times.ts";

// What crosses between the thread that decodes (and never touches a socket) and the one that asks it to.

/** What the decode thread opens. */
export interface DecodeSettings {
	/** Where models are registered. */
	readonly home: string;
	/** A registered name, `tiny`, `122b`, or a path. */
	readonly model: string;
	/** Refuse a synthetic model. @default false */
	readonly requireWeights?: boolean;
	readonly engine: EngineName;
	/** Compute threads. @default 1 */
	readonly threads?: number;
	/** Most bytes of experts kept loaded. @default unlimited */
	readonly memoryBytes?: number;
	/** Most bytes that the texts being decoded may remember: states, keys and values. @default unlimited */
	readonly textBytes?: number;
	readonly remote?: RemoteSettings;
	readonly scheduler?: SchedulerOptions;
}

export interface RemoteSettings {
	readonly layers: "all" | readonly number[];
	/** Whether prompt rows are asked for elsewhere too. @default true */
	readonly prefill?: boolean;
	/** Fail with `remote_required` rather than compute a pair here. @default false */
	readonly require?: boolean;
	/** Recompute every partial here and compare. @default false */
	readonly checkPartials?: boolean;
	/**
	 * How rows travel to canonical-1 workers: q14 (activation blocks: the same bits in half the bytes) for layers whose gate and
	 * up are block-quantised, else f32. Named, it holds for every remote layer. @default what each layer allows
	 */
	readonly dtype?: "f32" | "q14";
}

/** What was opened. */
export interface DecodeFacts {
	readonly engineClass: string;
	readonly name: string;
	readonly modelId: Uint8Array;
	readonly weightsKind: "file" | "synthetic";
	readonly shape: ModelShape;
	/** Layers whose experts are asked for elsewhere. */
	readonly remoteLayers: readonly number[];
}

/** What happened since the thread was opened. */
export interface DecodeReport {
	readonly times: StepTimes;
	/** null: nothing is remote. */
	readonly remote: RemoteCounts | null;
	/** null: partials are not checked. */
	readonly partials: PartialsReport | null;
}

/** Calls, each answered by one reply of the same id; `abort` and `answer` have none. */
export type DecodeCall =
	| { readonly call: "open"; readonly settings: DecodeSettings }
	| { readonly call: "generate"; readonly request: GenerationRequest }
	| { readonly call: "compute"; readonly batch: PairBatch }
	| { readonly call: "report" | "close" };

export type ToDecodeThread =
	| ({ readonly id: number } & DecodeCall)
	| { readonly abort: number }
	| { readonly answered: number; readonly result: { readonly answer: RemoteAnswer } | { readonly error: PlainError } };

export type FromDecodeThread =
	| { readonly id: number; readonly value: unknown }
	| { readonly id: number; readonly error: PlainError }
	| { readonly id: number; readonly token: number; readonly index: number }
	| { readonly ask: number; readonly request: RemoteRequest };

/** Buffers that the arrays span entirely: only those can move between threads. */
export function movable(...arrays: readonly (Float32Array | Uint16Array | Int16Array | Uint8Array)[]): ArrayBuffer[] {
	const buffers = arrays.flatMap(({ buffer, byteLength }) =>
		buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
	);
	return [...new Set(buffers)];
}
