import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { ExpertWeights } from "../../model/weight-matrix.ts";
import type { DeviceProof, ExpertBatch, ExpertEngine } from "../engine.ts";
import { openPortedEngine, type PortedEngine } from "../ported-engine.ts";
import type { DeviceOptions } from "./device-options.ts";
import { forkDevice } from "./fork-device.ts";

export interface GpuHostOptions {
	/** What the process opens. */
	readonly device: DeviceOptions;
	/** Where an expert's weights come from when a new process has to be filled again. */
	readonly source: (layer: number, expert: number) => Promise<ExpertWeights>;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Waits before the process is started again, by how many times in a row it ended before it computed anything. */
const restartDelaysMs = [0, 1_000, 5_000, 30_000, 60_000];

/** Opens an engine on a graphics device, in a process of its own. Throws `gpu_unavailable`. */
export async function openGpuEngine(options: GpuHostOptions): Promise<ExpertEngine> {
	return new GpuHost(options, await openPortedEngine(forkDevice(options.device)));
}

/**
 * Keeps a device process alive: when it ends (a crash, a lost device) requests in flight fail with `engine_failed`, so that the
 * backbone asks elsewhere; it is started again and filled with what it held. Until then everything fails the same way.
 */
class GpuHost implements ExpertEngine {
	readonly engineClass: string;
	readonly proof: DeviceProof;
	readonly #options: GpuHostOptions;
	readonly #held = new Map<string, readonly [layer: number, expert: number]>();
	readonly #closing = new AbortController();
	#engine: PortedEngine;
	#ready = true;
	/** Times in a row that the process ended without having computed. */
	#ends = 0;

	constructor(options: GpuHostOptions, engine: PortedEngine) {
		this.#options = options;
		this.#engine = engine;
		this.engineClass = engine.engineClass;
		this.proof = engine.proof!; // gpu-process.ts opens no engine without one
		this.#supervise().catch(() => {}); // rejects only once closed
	}

	get bytesHeld(): number {
		return this.#engine.bytesHeld;
	}

	has(layer: number, expert: number): boolean {
		return this.#held.has(`${layer}/${expert}`);
	}

	async load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
		this.#mustBeReady();
		await this.#engine.load(layer, expert, weights).catch((error: KvasirError) => {
			if (error.code === "out_of_memory") {
				const facts = { device: this.#options.device.id, experts: this.#held.size, error: error.message };
				this.#options.log.warn(facts, "the device has no room for more experts, it holds fewer");
			}
			throw error;
		});
		this.#held.set(`${layer}/${expert}`, [layer, expert]);
	}

	async unload(layer: number, expert: number): Promise<void> {
		this.#held.delete(`${layer}/${expert}`);
		if (this.#ready) await this.#engine.unload(layer, expert);
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		this.#mustBeReady();
		const vectors = await this.#engine.compute(batch);
		this.#ends = 0;
		return vectors;
	}

	async close(): Promise<void> {
		this.#closing.abort();
		await this.#engine.close();
	}

	#mustBeReady(): void {
		if (!this.#ready) throw new KvasirError("engine_failed", "Cannot compute: the device is being opened again");
	}

	async #supervise(): Promise<void> {
		const { signal } = this.#closing;
		const { device, clock, log } = this.#options;
		const facts = { device: device.id };
		for (;;) {
			await this.#engine.ended;
			signal.throwIfAborted();
			this.#ready = false;
			const delayMs = restartDelaysMs[Math.min(this.#ends++, restartDelaysMs.length - 1)]!;
			log.warn({ ...facts, delayMs }, "the device's process ended, it is started again");
			await clock.sleep(delayMs, signal);
			await this.#restart(signal).catch((error: unknown) => {
				log.warn({ ...facts, error: String(error) }, "the device could not be opened again");
			});
		}
	}

	/** A new process with everything the last one held. Where that fails, it has ended. */
	async #restart(signal: AbortSignal): Promise<void> {
		const { device, log } = this.#options;
		const engine = await openPortedEngine(forkDevice(device));
		this.#engine = engine;
		try {
			signal.throwIfAborted();
			for (const [key, [layer, expert]] of this.#held) {
				// One that was given up meanwhile, or no longer fits, is not held.
				const held = await this.#refill(engine, layer, expert);
				if (!held) this.#held.delete(key);
			}
		} catch (error) {
			await engine.close();
			throw error;
		}
		this.#ready = true;
		log.info({ device: device.id, experts: this.#held.size }, "the device computes again");
	}

	/** False where the device has less room than before. */
	async #refill(engine: PortedEngine, layer: number, expert: number): Promise<boolean> {
		try {
			await engine.load(layer, expert, await this.#options.source(layer, expert));
			return true;
		} catch (error) {
			if (!(error instanceof KvasirError && error.code === "out_of_memory")) throw error;
			this.#options.log.warn({ layer, expert, error: error.message }, "an expert no longer fits on the device");
			return false;
		}
	}
}
