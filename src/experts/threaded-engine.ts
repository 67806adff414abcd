import { Worker } from "node:worker_threads";
import { errorFromPlain, KvasirError } from "../errors.ts";
import { builtUrl } from "../io/built.ts";
import type { ExpertBatch, ExpertEngine } from "./engine.ts";
import type { EngineCall, EngineReply } from "./engine-thread.ts";
import type { EngineOptions } from "./open-engine.ts";

/**
 * Opens an engine in a thread of its own, so that a thread which owns sockets never computes.
 * The buffers of a batch's rows are given up by the caller: they move to the thread uncopied.
 * A thread that dies fails what is in flight, and everything after, with `engine_failed`.
 */
export async function openThreadedEngine(options: EngineOptions): Promise<ExpertEngine> {
	const thread = new Worker(builtUrl(import.meta.url, "./engine-thread.js"), { workerData: options });
	const calls = new Calls(thread);
	const engineClass = (await calls.send({ call: "open" })) as string;
	return new ThreadedEngine(calls, engineClass);
}

class ThreadedEngine implements ExpertEngine {
	readonly engineClass: string;
	readonly #calls: Calls;
	readonly #held = new Set<string>();
	bytesHeld = 0;

	constructor(calls: Calls, engineClass: string) {
		this.#calls = calls;
		this.engineClass = engineClass;
	}

	async load(layer: number, expert: number, weights: Parameters<ExpertEngine["load"]>[2]): Promise<void> {
		this.bytesHeld = (await this.#calls.send({ call: "load", layer, expert, weights })) as number;
		this.#held.add(`${layer}/${expert}`);
	}

	async unload(layer: number, expert: number): Promise<void> {
		this.#held.delete(`${layer}/${expert}`);
		this.bytesHeld = (await this.#calls.send({ call: "unload", layer, expert })) as number;
	}

	has(layer: number, expert: number): boolean {
		return this.#held.has(`${layer}/${expert}`);
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		const rows = batch.rows.dtype === "f32" ? [batch.rows.values] : [batch.rows.q, batch.rows.scales];
		return (await this.#calls.send({ call: "compute", batch }, wholeBuffers(rows))) as Float32Array;
	}

	async close(): Promise<void> {
		await this.#calls.close();
	}
}

/** The buffers that the arrays span entirely: only those can move. */
function wholeBuffers(arrays: readonly (Float32Array | Int16Array)[]): ArrayBuffer[] {
	return arrays.flatMap(({ buffer, byteLength }) =>
		buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
	);
}

/** Numbered calls to the thread and the promises that wait for them. */
class Calls {
	readonly #thread: Worker;
	readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
	#next = 1;
	#dead: KvasirError | null = null;

	constructor(thread: Worker) {
		this.#thread = thread;
		thread.on("message", (reply: EngineReply) => this.#settle(reply));
		thread.on("error", (cause) => this.#die(cause));
		thread.on("exit", () => this.#die(null));
	}

	send(call: EngineCall, transfer: ArrayBuffer[] = []): Promise<unknown> {
		if (this.#dead) return Promise.reject(this.#dead);
		const id = this.#next++;
		return new Promise((resolve, reject) => {
			this.#waiting.set(id, { resolve, reject });
			this.#thread.postMessage({ id, ...call }, transfer);
		});
	}

	async close(): Promise<void> {
		if (!this.#dead) await this.send({ call: "close" });
		await this.#thread.terminate();
	}

	#settle(reply: EngineReply): void {
		const waiting = this.#waiting.get(reply.id);
		this.#waiting.delete(reply.id);
		if ("error" in reply) waiting?.reject(errorFromPlain(reply.error));
		else waiting?.resolve(reply.value);
	}

	#die(cause: unknown): void {
		this.#dead ??= new KvasirError("engine_failed", "Cannot compute: the engine's thread has ended", { cause });
		for (const { reject } of this.#waiting.values()) reject(this.#dead);
		this.#waiting.clear();
	}
}
