import { SHARE_ENV, Worker } from "node:worker_threads";
import { errorFromPlain, KvasirError, plainError } from "../../errors.ts";
import { builtUrl } from "../../io/built.ts";
import type { RemoteExperts, RemoteRequest } from "../remote.ts";
import {
	type DecodeCall,
	type DecodeFacts,
	type DecodeReport,
	type DecodeSettings,
	type FromDecodeThread,
	movable,
	type ToDecodeThread,
} from "./decode-messages.ts";
import type { GenerationRequest, GenerationResult } from "./generation.ts";
import type { PairBatch } from "./local-experts.ts";
import type { GenerationHooks } from "./scheduler.ts";

interface Waiting {
	readonly resolve: (value: unknown) => void;
	readonly reject: (error: unknown) => void;
	readonly onToken?: (token: number, index: number) => void;
}

/**
 * Opens a model in a decode thread of its own. Throws what opening the model and the engine throws.
 *
 * @param remote asked, on this thread, for the experts of the layers in `settings.remote`
 */
export async function openDecodeThread(settings: DecodeSettings, remote?: RemoteExperts): Promise<DecodeClient> {
	// SHARE_ENV: the thread must be able to switch onnxruntime's telemetry off in the real environment.
	const thread = new Worker(builtUrl(import.meta.url, "./decode-thread.js"), { env: SHARE_ENV });
	const port = new DecodePort(thread, remote);
	try {
		return new DecodeClient(port, (await port.call({ call: "open", settings })) as DecodeFacts);
	} catch (error) {
		await thread.terminate();
		throw error;
	}
}

/** The decode thread, seen from the thread that owns sockets. Several texts may be generated at once. */
export class DecodeClient {
	readonly facts: DecodeFacts;
	readonly #port: DecodePort;

	constructor(port: DecodePort, facts: DecodeFacts) {
		this.#port = port;
		this.facts = facts;
	}

	/** Generates one text, token by token. Throws as `Scheduler.generate` does, and `engine_failed` when the thread is gone. */
	async generate(request: GenerationRequest, hooks: GenerationHooks = {}): Promise<GenerationResult> {
		return (await this.#port.call({ call: "generate", request }, hooks)) as GenerationResult;
	}

	/** Computes (row, expert) pairs with the local copy of the experts: audits, and answers nobody gave. (pairs, hidden) */
	async compute(batch: PairBatch): Promise<Float32Array> {
		return (await this.#port.call({ call: "compute", batch })) as Float32Array;
	}

	/** What happened so far: times, remote pairs, checked partials. */
	async report(): Promise<DecodeReport> {
		return (await this.#port.call({ call: "report" })) as DecodeReport;
	}

	/** Ends running texts as aborted, closes the model and ends the thread. */
	async close(): Promise<void> {
		await this.#port.close();
	}
}

/** Numbered calls to the thread, and the thread's questions to the swarm. */
class DecodePort {
	readonly #thread: Worker;
	readonly #remote: RemoteExperts | undefined;
	readonly #waiting = new Map<number, Waiting>();
	#next = 1;
	#gone: KvasirError | null = null;

	constructor(thread: Worker, remote: RemoteExperts | undefined) {
		this.#thread = thread;
		this.#remote = remote;
		thread.on("message", (message: FromDecodeThread) => this.#receive(message));
		thread.on("error", (cause) => this.#end(cause));
		thread.on("exit", () => this.#end(undefined));
	}

	call(call: DecodeCall, { onToken, signal }: GenerationHooks = {}): Promise<unknown> {
		if (this.#gone) return Promise.reject(this.#gone);
		const id = this.#next++;
		const abort = () => this.#post({ abort: id });
		const answered = new Promise((resolve, reject) => {
			this.#waiting.set(id, { resolve, reject, ...(onToken && { onToken }) });
			this.#post({ id, ...call });
		});
		if (signal?.aborted) abort();
		signal?.addEventListener("abort", abort, { once: true });
		return answered.finally(() => signal?.removeEventListener("abort", abort));
	}

	async close(): Promise<void> {
		if (!this.#gone) await this.call({ call: "close" });
		await this.#thread.terminate();
	}

	#receive(message: FromDecodeThread): void {
		if ("ask" in message) {
			void this.#ask(message.ask, message.request);
			return;
		}
		const waiting = this.#waiting.get(message.id);
		if ("token" in message) {
			waiting?.onToken?.(message.token, message.index);
			return;
		}
		this.#waiting.delete(message.id);
		if ("error" in message) waiting?.reject(errorFromPlain(message.error));
		else waiting?.resolve(message.value);
	}

	async #ask(ask: number, request: RemoteRequest): Promise<void> {
		try {
			if (!this.#remote) throw new KvasirError("internal", "Cannot ask for remote experts: there is no swarm");
			const answer = await this.#remote.request(request);
			this.#post({ answered: ask, result: { answer } }, movable(answer.vectors, answer.worker, answer.summed));
		} catch (error) {
			this.#post({ answered: ask, result: { error: plainError(error) } });
		}
	}

	#post(message: ToDecodeThread, transfer: ArrayBuffer[] = []): void {
		if (!this.#gone) this.#thread.postMessage(message, transfer);
	}

	#end(cause: unknown): void {
		this.#gone ??= new KvasirError("engine_failed", "Cannot decode: the decode thread has ended", { cause });
		for (const { reject } of this.#waiting.values()) reject(this.#gone);
		this.#waiting.clear();
	}
}
