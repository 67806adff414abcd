import { parentPort, workerData } from "node:worker_threads";
import { type PlainError, plainError } from "../errors.ts";
import type { ExpertWeights } from "../model/weight-matrix.ts";
import type { ExpertBatch, ExpertEngine } from "./engine.ts";
import { type EngineOptions, openEngine } from "./open-engine.ts";

// The entry of the thread behind threaded-engine.ts: opens the engine, then answers one call after another.

export type EngineCall =
	| { readonly call: "open" | "close" }
	| { readonly call: "load"; readonly layer: number; readonly expert: number; readonly weights: ExpertWeights }
	| { readonly call: "unload"; readonly layer: number; readonly expert: number }
	| { readonly call: "compute"; readonly batch: ExpertBatch };

export type EngineReply =
	| { readonly id: number; readonly value: unknown }
	| { readonly id: number; readonly error: PlainError };

const port = parentPort!;
let opening: Promise<ExpertEngine> | null = null;
let previous: Promise<unknown> = Promise.resolve();

port.on("message", (call: EngineCall & { id: number }) => {
	previous = previous.then(() => answer(call));
});

async function answer(call: EngineCall & { id: number }): Promise<void> {
	try {
		const value = await perform(call);
		const transfer = value instanceof Float32Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
		port.postMessage({ id: call.id, value } satisfies EngineReply, transfer);
	} catch (error) {
		port.postMessage({ id: call.id, error: plainError(error) } satisfies EngineReply);
	}
}

async function perform(call: EngineCall): Promise<unknown> {
	opening ??= openEngine(workerData as EngineOptions);
	const engine = await opening;
	switch (call.call) {
		case "open":
			return engine.engineClass;
		case "load":
			await engine.load(call.layer, call.expert, call.weights);
			return engine.bytesHeld;
		case "unload":
			await engine.unload(call.layer, call.expert);
			return engine.bytesHeld;
		case "compute":
			return engine.compute(call.batch);
		case "close":
			return engine.close();
	}
}
