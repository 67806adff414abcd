import { type MessagePort, parentPort } from "node:worker_threads";
import { errorFromPlain, KvasirError, plainError } from "../../errors.ts";
import type { RemoteAnswer, RemoteRequest } from "../remote.ts";
import { type FromDecodeThread, movable, type ToDecodeThread } from "./decode-messages.ts";
import { type DecodeRoom, openDecodeRoom } from "./decode-room.ts";

// The entry of the decode thread. The kernels, and onnxruntime for other engines, block it; sockets live elsewhere.

type Call = Extract<ToDecodeThread, { call: unknown }>;

class DecodeThread {
	readonly #port: MessagePort;
	readonly #aborts = new Map<number, AbortController>();
	readonly #asked = new Map<number, { resolve: (answer: RemoteAnswer) => void; reject: (error: Error) => void }>();
	#nextAsk = 1;
	#room: DecodeRoom | null = null;

	constructor(port: MessagePort) {
		this.#port = port;
		port.on("message", (message: ToDecodeThread) => this.#receive(message));
	}

	#receive(message: ToDecodeThread): void {
		if ("abort" in message) this.#aborts.get(message.abort)?.abort();
		else if ("answered" in message) this.#settle(message);
		else void this.#reply(message);
	}

	async #reply(call: Call): Promise<void> {
		try {
			const value = await this.#perform(call);
			this.#post({ id: call.id, value }, value instanceof Float32Array ? movable(value) : []);
		} catch (error) {
			this.#post({ id: call.id, error: plainError(error) });
		}
	}

	async #perform(call: Call): Promise<unknown> {
		if (call.call === "open") {
			this.#room = await openDecodeRoom(call.settings, { request: (request) => this.#ask(request) });
			return this.#room.facts;
		}
		const room = this.#room;
		if (!room) throw new KvasirError("internal", `Cannot ${call.call}: the decode thread is not open`);
		switch (call.call) {
			case "generate": {
				const abort = new AbortController();
				this.#aborts.set(call.id, abort);
				const onToken = (token: number, index: number) => this.#post({ id: call.id, token, index });
				const generated = room.scheduler.generate(call.request, { onToken, signal: abort.signal });
				return generated.finally(() => this.#aborts.delete(call.id));
			}
			case "compute":
				return room.decoder.local.compute(call.batch);
			case "report":
				return room.report();
			case "close":
				return room.close();
		}
	}

	/** Hands a request to the thread that owns the sockets; its buffers move. */
	#ask(request: RemoteRequest): Promise<RemoteAnswer> {
		const ask = this.#nextAsk++;
		return new Promise((resolve, reject) => {
			this.#asked.set(ask, { resolve, reject });
			const { rows, quantised, rowIndex, expert, weight } = request;
			const blocks = quantised ? [quantised.q, quantised.scales] : [];
			this.#post({ ask, request }, movable(rows, ...blocks, rowIndex, expert, weight));
		});
	}

	#settle({ answered, result }: Extract<ToDecodeThread, { answered: number }>): void {
		const asked = this.#asked.get(answered);
		this.#asked.delete(answered);
		if ("answer" in result) asked?.resolve(result.answer);
		else asked?.reject(errorFromPlain(result.error));
	}

	#post(message: FromDecodeThread, transfer: ArrayBuffer[] = []): void {
		this.#port.postMessage(message, transfer);
	}
}

new DecodeThread(parentPort!);
