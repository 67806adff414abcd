import { SHARE_ENV, Worker } from "node:worker_threads";
import { builtUrl } from "../io/built.ts";
import type { ExpertEngine } from "./engine.ts";
import type { EnginePort, EngineReply } from "./engine-port.ts";
import type { EngineOptions } from "./open-engine.ts";
import { openPortedEngine } from "./ported-engine.ts";

/** Opens an engine in a thread of its own, so that a thread which owns sockets never computes. */
export function openThreadedEngine(options: EngineOptions): Promise<ExpertEngine> {
	const thread = new Worker(builtUrl(import.meta.url, "./engine-thread.js"), {
		workerData: options,
		env: SHARE_ENV, // as onnxruntime.ts wants it
	});
	let failure: unknown = null;
	const port: EnginePort = {
		post: (call, transfer) => thread.postMessage(call, transfer),
		onReply: () => {},
		onEnd: () => {},
		stop: async () => {
			await thread.terminate();
		},
	};
	thread.on("message", (reply: EngineReply) => port.onReply(reply));
	thread.on("error", (error) => {
		failure = error;
	});
	thread.on("exit", () => port.onEnd(failure));
	return openPortedEngine(port);
}
