import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { KvasirError } from "../../errors.ts";
import { builtUrl } from "../../io/built.ts";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { ExpertWeights } from "../../model/weight-matrix.ts";
import type { ExpertBatch, ExpertEngine } from "../engine.ts";
import type { EnginePort, EngineReply } from "../engine-port.ts";
import { openPortedEngine, type PortedEngine } from "../ported-engine.ts";

export interface GpuHostOptions {
	/** An id of listAdapters(). */
	readonly adapter: string;
	/** Device memory for experts. */
	readonly memoryBytes: number;
	/** Where an expert's weights come from when a new process has to be filled again. */
	readonly source: (layer: number, expert: number) => Promise<ExpertWeights>;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Waits before the process is started again, by how many times in a row it has ended. */
const restartDelaysMs = [0, 1_000, 5_000, 30_000, 60_000];

/** Opens canonical-1 on a graphics device, in a process of its own. Throws `gpu_unavailable`. */
export async function openGpuEngine(options: GpuHostOptions): Promise<ExpertEngine> {
	return new GpuHost(options, await openPortedEngine(forkDevice(options)));
}

/**
 * Keeps a device process alive: when it ends (a crash, a lost device) requests in flight fail with `engine_failed`, so that the
 * backbone asks elsewhere; it is started again and filled with what it held. Until then everything fails the same way.
 */
class GpuHost implements ExpertEngine {
	readonly engineClass = "canonical-1";
	readonly #options: GpuHostOptions;
	readonly #held = new Map<string, readonly [layer: number, expert: number]>();
	#engine: PortedEngine;
	#ready = true;
	#closed = false;
	#ends = 0;

	constructor(options: GpuHostOptions, engine: PortedEngine) {
		this.#options = options;
		this.#engine = engine;
		this.#watch(engine);
	}

	get bytesHeld(): number {
		return this.#engine.bytesHeld;
	}

	has(layer: number, expert: number): boolean {
		return this.#held.has(`${layer}/${expert}`);
	}

	async load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
		await this.#engine.load(layer, expert, weights);
		this.#held.set(`${layer}/${expert}`, [layer, expert]);
	}

	async unload(layer: number, expert: number): Promise<void> {
		this.#held.delete(`${layer}/${expert}`);
		await this.#engine.unload(layer, expert);
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		if (!this.#ready) throw new KvasirError("engine_failed", "Cannot compute: the device is being opened again");
		const vectors = await this.#engine.compute(batch);
		this.#ends = 0;
		return vectors;
	}

	async close(): Promise<void> {
		this.#closed = true;
		await this.#engine.close();
	}

	#watch(engine: PortedEngine): void {
		engine.ended.then(() => {
			if (this.#closed) return;
			this.#ready = false;
			const delayMs = restartDelaysMs[Math.min(this.#ends++, restartDelaysMs.length - 1)]!;
			this.#options.log.warn(
				{ adapter: this.#options.adapter, delayMs },
				"the device's process ended, it is started again",
			);
			this.#options.clock.after(delayMs, () => this.#restart());
		});
	}

	async #restart(): Promise<void> {
		try {
			const engine = await openPortedEngine(forkDevice(this.#options));
			if (this.#closed) return await engine.close();
			this.#engine = engine;
			this.#watch(engine);
			for (const [layer, expert] of this.#held.values()) {
				await engine.load(layer, expert, await this.#options.source(layer, expert));
			}
			this.#ready = true;
			this.#options.log.info({ adapter: this.#options.adapter, experts: this.#held.size }, "the device computes again");
		} catch (error) {
			this.#options.log.warn(
				{ adapter: this.#options.adapter, error: String(error) },
				"the device could not be opened",
			);
			const delayMs = restartDelaysMs[Math.min(this.#ends++, restartDelaysMs.length - 1)]!;
			if (!this.#closed) this.#options.clock.after(delayMs, () => this.#restart());
		}
	}
}

function forkDevice({ adapter, memoryBytes }: GpuHostOptions): EnginePort {
	const child = fork(fileURLToPath(builtUrl(import.meta.url, "./gpu-process.js")), [adapter, String(memoryBytes)], {
		serialization: "advanced",
		stdio: ["ignore", "ignore", "inherit", "ipc"],
	});
	const exited = new Promise<unknown>((resolve) => {
		child.once("exit", (code, signal) => resolve(new Error(`exit ${signal ?? code}`)));
		child.once("error", resolve);
	});
	const port: EnginePort = {
		post: (call) => void child.send(call, () => {}),
		onReply: () => {},
		onEnd: () => {},
		stop: async () => {
			child.kill("SIGKILL");
			await exited;
		},
	};
	child.on("message", (reply) => port.onReply(reply as EngineReply));
	exited.then((cause) => port.onEnd(cause));
	return port;
}
