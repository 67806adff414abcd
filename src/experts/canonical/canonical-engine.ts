import { KvasirError } from "../../errors.ts";
import type { ExpertWeights, WeightMatrix } from "../../model/weight-matrix.ts";
import type { ExpertBatch, ExpertEngine } from "../engine.ts";
import { joinRows } from "../join-rows.ts";
import type { MatrixEngine, MatrixGroup } from "../matrices.ts";
import { Arena, type Place } from "./arena.ts";
import { expertsOf } from "./batch-experts.ts";
import { makeExchange } from "./exchange.ts";
import { postExperts } from "./expert-job.ts";
import { control, type Failure, failures, header, jobKinds } from "./job.ts";
import { compileKernel } from "./kernel-module.ts";
import { checkMatrix, packedBytes, workSpace } from "./layout.ts";
import type { LoadedExpert, LoadedMatrix } from "./loaded.ts";
import { postMatrices } from "./matrix-job.ts";
import { packJobs, postPack } from "./pack-job.ts";
import { Pool, type PoolOptions } from "./pool.ts";
import { splitBatch } from "./split-batch.ts";

/** Rows, intermediate and final vectors of one job, about: larger batches are several jobs. */
const jobBytes = 128 * 1024 ** 2;

export interface CanonicalOptions extends Partial<PoolOptions> {
	/** Most bytes of weights, as laid out for the kernels (at most 1.06 of their file bytes). */
	readonly memoryBytes: number;
	/** Most bytes of one WebAssembly memory. @default 3 GiB */
	readonly eachBytesMax?: number;
}

/** Experts and dense matrices over one arena, and the kernel's own exp32 for the self-check. */
export interface CanonicalEngine extends ExpertEngine, MatrixEngine {
	/** exp32 of each value (numerics.md); at most 65,536 of them. */
	exponentials(values: Float32Array): Promise<Float32Array>;
}

/**
 * Opens an engine of class `canonical-1`.
 *
 * @param options.threads threads that compute. @default 1
 * @param options.inCaller whether the caller's is one of them: calls then finish before they return. Never for a thread that owns
 * sockets. @default true
 */
export async function openCanonicalEngine(options: CanonicalOptions): Promise<CanonicalEngine> {
	const { threads = 1, inCaller = true, memoryBytes, eachBytesMax } = options;
	if (!(Number.isInteger(threads) && threads >= 1)) {
		throw new KvasirError("usage", `Cannot start the canonical engine: ${threads} threads`);
	}
	const arena = new Arena(memoryBytes, threads * workSpace.bytes, eachBytesMax);
	const words = new Int32Array(new SharedArrayBuffer(4 * control.words));
	const shared = { module: compileKernel(), memories: arena.memories, exchange: makeExchange(), control: words };
	const pool = new Pool(shared, { threads, inCaller });
	try {
		await pool.started;
	} catch (error) {
		await pool.close();
		throw error;
	}
	return new Canonical(arena, shared.exchange, pool, threads);
}

class Canonical implements CanonicalEngine {
	readonly engineClass = "canonical-1";
	readonly #arena: Arena;
	readonly #exchange: SharedArrayBuffer;
	readonly #pool: Pool;
	readonly #threads: number;
	/** By layer, then by expert. */
	readonly #layers = new Map<number, Map<number, LoadedExpert>>();

	constructor(arena: Arena, exchange: SharedArrayBuffer, pool: Pool, threads: number) {
		this.#arena = arena;
		this.#exchange = exchange;
		this.#pool = pool;
		this.#threads = threads;
	}

	get bytesHeld(): number {
		return this.#arena.bytesHeld;
	}

	async load(layer: number, expert: number, weights: ExpertWeights): Promise<void> {
		const name = `expert ${expert} of layer ${layer}`;
		const { gate, up, down } = weights;
		const fits = up.inputs === gate.inputs && up.outputs === gate.outputs && down.inputs === gate.outputs;
		if (!fits || down.outputs !== gate.inputs) {
			throw new KvasirError("unsupported_shape", `Cannot load ${name}: its matrices do not fit each other`);
		}
		const [matrices, place] = await this.#hold(name, [gate, up, down]);
		await this.unload(layer, expert);
		const [g, u, d] = matrices as [LoadedMatrix, LoadedMatrix, LoadedMatrix];
		const loaded = { hidden: gate.inputs, width: gate.outputs, place, gate: g, up: u, down: d };
		this.#layers.set(layer, (this.#layers.get(layer) ?? new Map()).set(expert, loaded));
	}

	async unload(layer: number, expert: number): Promise<void> {
		const experts = this.#layers.get(layer);
		const loaded = experts?.get(expert);
		if (!loaded) return;
		experts!.delete(expert);
		// After the jobs that were given while it was there.
		await this.#pool.settled();
		this.#arena.release(loaded.place);
	}

	has(layer: number, expert: number): boolean {
		return this.#layers.get(layer)?.has(expert) ?? false;
	}

	async compute(batch: ExpertBatch): Promise<Float32Array> {
		const experts = expertsOf(batch, this.#layers.get(batch.layer));
		const expert = experts.values().next().value;
		if (!expert) return new Float32Array(0);
		const pairsPerRow = Math.ceil(batch.expert.length / batch.rowCount);
		const rowBytes = 4 * (2 * expert.hidden + pairsPerRow * (expert.hidden + expert.width));
		const parts = splitBatch(batch, Math.max(1, Math.floor(jobBytes / rowBytes)));
		const answers = await Promise.all(parts.map((part) => this.#computePart(part, experts)));
		return answers.length === 1 ? answers[0]! : joinRows(answers);
	}

	#computePart(batch: ExpertBatch, experts: ReadonlyMap<number, LoadedExpert>): Promise<Float32Array> {
		let answer = { at: 0, values: 0 };
		return this.#pool.run(
			() => {
				answer = postExperts(this.#exchange, batch, experts, this.#threads);
			},
			(failure) => {
				throwFailure(failure);
				return new Float32Array(this.#exchange, answer.at, answer.values).slice();
			},
		);
	}

	async group(name: string, matrices: readonly WeightMatrix[]): Promise<MatrixGroup> {
		if (matrices.some(({ inputs }) => inputs !== matrices[0]!.inputs)) {
			throw new KvasirError("unsupported_shape", `Cannot group ${name}: its matrices read rows of different lengths`);
		}
		const [loaded, place] = await this.#hold(name, matrices);
		const placed = loaded.map((matrix) => ({ ...matrix, memory: place.memory }));
		return {
			multiply: async (rows, rowCount) => {
				let outs: number[] = [];
				return this.#pool.run(
					() => {
						outs = postMatrices(this.#exchange, placed, rows, rowCount, this.#threads);
					},
					(failure) => {
						throwFailure(failure);
						return placed.map(({ outputs }, i) =>
							new Float32Array(this.#exchange, outs[i], rowCount * outputs).slice(),
						);
					},
				);
			},
			close: async () => {
				await this.#pool.settled();
				this.#arena.release(place);
			},
		};
	}

	/** Lays matrices out in one place. */
	async #hold(name: string, matrices: readonly WeightMatrix[]): Promise<[LoadedMatrix[], Place]> {
		for (const matrix of matrices) checkMatrix(name, matrix);
		const place = this.#arena.allocate(matrices.reduce((sum, matrix) => sum + packedBytes(matrix), 0));
		let at = place.at;
		const loaded = matrices.map((matrix) => {
			const { type, inputs, outputs } = matrix;
			const start = at;
			at += packedBytes(matrix);
			return { type, inputs, outputs, at: start };
		});
		try {
			const places = loaded.map((matrix) => ({ ...place, at: matrix.at }));
			for (const parts of packJobs(matrices, places)) {
				await this.#pool.run(() => postPack(this.#exchange, parts), throwFailure);
			}
		} catch (error) {
			this.#arena.release(place);
			throw error instanceof KvasirError && error.code === "bad_weights"
				? new KvasirError("bad_weights", `Cannot load ${name}: a weight or scale is not finite`)
				: error;
		}
		return [loaded, place];
	}

	async exponentials(values: Float32Array): Promise<Float32Array> {
		const at = header.words * 4;
		return this.#pool.run(
			() => {
				const words = new Int32Array(this.#exchange, 0, header.words);
				words[header.kind] = jobKinds.exponentials;
				words[header.units] = 1;
				words[header.rows] = at;
				words[header.inputs] = values.length;
				new Float32Array(this.#exchange, at, values.length).set(values);
			},
			(failure) => {
				throwFailure(failure);
				return new Float32Array(this.#exchange, at, values.length).slice();
			},
		);
	}

	close(): Promise<void> {
		return this.#pool.close();
	}
}

function throwFailure(failure: Failure): void {
	switch (failure) {
		case failures.none:
			return;
		case failures.row:
			throw new KvasirError("non_finite", "Cannot compute: a row is not finite", { facts: { where: "row" } });
		case failures.result:
			throw new KvasirError("non_finite", "Cannot compute: a result is not finite", { facts: { where: "result" } });
		case failures.bounds:
			throw new KvasirError("bounds", "Cannot compute: a quantised row is out of its bounds");
		case failures.weights:
			throw new KvasirError("bad_weights", "Cannot load weights: a weight or scale is not finite");
		case failures.crashed:
			throw new KvasirError("engine_failed", "Cannot compute: a compute thread failed");
	}
}
