import type { PlainError } from "../errors.ts";
import type { ExpertWeights } from "../model/weight-matrix.ts";
import type { DeviceProof, ExpertBatch } from "./engine.ts";

// What crosses between an engine that computes in a thread or process of its own and the thread that asks it.

export type EngineCall =
	| { readonly call: "open" | "close" }
	| { readonly call: "load"; readonly layer: number; readonly expert: number; readonly weights: ExpertWeights }
	| { readonly call: "unload"; readonly layer: number; readonly expert: number }
	| { readonly call: "compute"; readonly batch: ExpertBatch };

/** The answer to `open`. */
export interface OpenedEngine {
	readonly engineClass: string;
	readonly proof: DeviceProof | undefined;
}

export type EngineReply =
	| { readonly id: number; readonly value: unknown }
	| { readonly id: number; readonly error: PlainError };

/** The asking side's view of the thread or process. */
export interface EnginePort {
	/** Sends a call; `transfer` may move instead of being copied. */
	post(call: EngineCall & { readonly id: number }, transfer: ArrayBuffer[]): void;
	onReply: (reply: EngineReply) => void;
	/** Called once, when the thread or process is gone. */
	onEnd: (cause: unknown) => void;
	stop(): Promise<void>;
}
