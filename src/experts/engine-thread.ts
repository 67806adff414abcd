import { parentPort, workerData } from "node:worker_threads";
import { type EngineOptions, openEngine } from "./open-engine.ts";
import { serveEngine } from "./serve-engine.ts";

// The entry of the thread behind threaded-engine.ts.
const port = parentPort!;
port.on(
	"message",
	serveEngine(
		() => openEngine(workerData as EngineOptions),
		(reply, transfer) => port.postMessage(reply, transfer),
	),
);
