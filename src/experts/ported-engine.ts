import { errorFromPlain, KvasirError } from "../errors.ts";
import type { ExpertWeights } from "../model/weight-matrix.ts";
import type { DeviceProof, ExpertBatch, ExpertEngine } from "./engine.ts";
import type { EngineCall, EnginePort, EngineReply, OpenedEngine } from "./engine-port.ts";

/**
 * An engine behind a port. The buffers of a batch's rows are given up by the caller: they may move uncopied.
 * When the other side ends, what is in flight and everything after fails with `engine_failed`.
 */
export async function openPortedEngine(port: EnginePort): Promise<PortedEngine> {
	const calls = new Calls(port);
	try {
		return new PortedEngine(calls, (await calls.send({ call: "open" })) as OpenedEngine);
	} catch (error) {
		await port.stop();
		throw error;
	}
}

export class PortedEngine implements ExpertEngine {
	readonly engineClass: string;
	readonly proof?: DeviceProof;
	/** Resolves when the other side is gone. */
	readonly ended: Promise<void>;
	readonly #calls: Calls;
	readonly #held = new Set<string>();
	bytesHeld = 0;

	constructor(calls: Calls, { engineClass, proof }: OpenedEngine) {
		this.#calls = calls;
		this.engineClass = engineClass;
		if (proof) this.proof = proof;
		this.ended = calls.ended;
	}

	async load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
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

	close(): Promise<void> {
		return this.#calls.close();
	}
}

/** The buffers that the arrays span entirely: only those can move. */
function wholeBuffers(arrays: readonly (Float32Array | Int16Array)[]): ArrayBuffer[] {
	return arrays.flatMap(({ buffer, byteLength }) =>
		buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
	);
}

/** Numbered calls and the promises that wait for them. */
class Calls {
	readonly #port: EnginePort;
	readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
	readonly ended: Promise<void>;
	#next = 1;
	#dead: KvasirError | null = null;

	constructor(port: EnginePort) {
		this.#port = port;
		port.onReply = (reply) => this.#settle(reply);
		this.ended = new Promise((resolve) => {
			port.onEnd = (cause) => {
				this.#die(cause);
				resolve();
			};
		});
	}

	send(call: EngineCall, transfer: ArrayBuffer[] = []): Promise<unknown> {
		if (this.#dead) return Promise.reject(this.#dead);
		const id = this.#next++;
		return new Promise((resolve, reject) => {
			this.#waiting.set(id, { resolve, reject });
			this.#port.post({ id, ...call }, transfer);
		});
	}

	async close(): Promise<void> {
		if (!this.#dead) await this.send({ call: "close" }).catch(() => {});
		await this.#port.stop();
	}

	#settle(reply: EngineReply): void {
		const waiting = this.#waiting.get(reply.id);
		this.#waiting.delete(reply.id);
		if ("error" in reply) waiting?.reject(errorFromPlain(reply.error));
		else waiting?.resolve(reply.value);
	}

	#die(cause: unknown): void {
		this.#dead ??= new KvasirError("engine_failed", "Cannot compute: the engine has ended", { cause });
		for (const { reject } of this.#waiting.values()) reject(this.#dead);
		this.#waiting.clear();
	}
}
