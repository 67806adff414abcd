import type { MatrixEngine, MatrixGroup } from "../../experts/matrices.ts";
import type { Model } from "../../model/model.ts";
import type { ModelShape } from "../../model/shape.ts";
import { type BlockVectors, combineInto } from "./combine.ts";
import type { LocalExperts } from "./local-experts.ts";
import type { RemoteLayers } from "./remote-layers.ts";
import { type Routes, route } from "./router.ts";
import { requireFinite } from "./rows.ts";
import type { Step } from "./step.ts";
import type { Stopwatch } from "./step-times.ts";

/** What the expert blocks of all layers share. */
export interface ExpertBlockParts {
	readonly local: LocalExperts;
	readonly remote: RemoteLayers | null;
	readonly stopwatch: Stopwatch;
}

/** Loads the expert block of one layer: its router and the shared expert's gate; experts are loaded when they are used. */
export async function loadExpertBlock(
	model: Model,
	layer: number,
	matrices: MatrixEngine,
	parts: ExpertBlockParts,
): Promise<ExpertBlock> {
	const router = await matrices.group(`blk.${layer}.router`, [
		await model.weights.matrix(`blk.${layer}.ffn_gate_inp.weight`),
		await model.weights.matrix(`blk.${layer}.ffn_gate_inp_shexp.weight`),
	]);
	return new ExpertBlock(model.shape, layer, router, parts);
}

/**
 * The mixture of experts of one layer (qwen35moe.md section 5): routed once, here; computed here or elsewhere; combined here.
 * A row has topK + 1 slots: its routed experts in rank order, then the shared expert; slot s belongs to row s / (topK + 1).
 */
export class ExpertBlock {
	readonly #shape: ModelShape;
	readonly #layer: number;
	readonly #router: MatrixGroup;
	readonly #parts: ExpertBlockParts;
	readonly #slots: number;

	constructor(shape: ModelShape, layer: number, router: MatrixGroup, parts: ExpertBlockParts) {
		this.#shape = shape;
		this.#layer = layer;
		this.#router = router;
		this.#parts = parts;
		this.#slots = shape.topK + 1;
	}

	/** Adds the block's output for `rows` to `residual`; both (step.count, hidden). */
	async addTo(residual: Float32Array, rows: Float32Array, step: Step): Promise<void> {
		const { stopwatch } = this.#parts;
		const [logits, gates] = (await this.#router.multiply(rows, step.count)) as [Float32Array, Float32Array];
		requireFinite(logits, "a logit of the router");
		requireFinite(gates, "the gate of the shared expert");
		const routes = route(logits, step.count, this.#shape.experts, this.#shape.topK);
		stopwatch.lap("routerMs");
		const vectors = await this.#vectors(rows, routes, step);
		combineInto(residual, this.#shape.hidden, vectors, routes, gates);
		stopwatch.lap("routerMs");
	}

	async close(): Promise<void> {
		await this.#router.close();
	}

	async #vectors(rows: Float32Array, routes: Routes, step: Step): Promise<BlockVectors> {
		const { remote, stopwatch } = this.#parts;
		const away = remote?.rowsOf(this.#layer, step) ?? [];
		if (remote && away.length > 0) return this.#vectorsFromAfar(remote, away, rows, routes, step);
		const slots = Array.from({ length: step.count * this.#slots }, (_, slot) => slot);
		const values = await this.#computeHere(rows, routes, slots);
		stopwatch.lap("expertsMs");
		return { values, summed: null };
	}

	/** Asks for the experts of the rows `away`, computes what is local while they travel, and puts both together. */
	async #vectorsFromAfar(
		remote: RemoteLayers,
		away: readonly number[],
		rows: Float32Array,
		routes: Routes,
		step: Step,
	): Promise<BlockVectors> {
		const { stopwatch } = this.#parts;
		const { hidden, topK } = this.#shape;
		const values = new Float32Array(step.count * this.#slots * hidden);
		const summed = new Uint8Array(step.count);
		const asking = remote.ask(remote.requestFor(this.#layer, away, rows, routes, step), away, step);
		asking.catch(() => {}); // awaited below; it may fail while this thread computes
		await this.#computeInto(values, rows, routes, slotsBesides(away, step.count, topK));
		stopwatch.lap("expertsMs");
		const answer = await asking;
		stopwatch.lap("waitMs");
		const slotOf = (pair: number) => away[Math.floor(pair / topK)]! * this.#slots + (pair % topK);
		for (let pair = 0; pair < answer.worker.length; pair++) {
			values.set(answer.vectors.subarray(pair * hidden, (pair + 1) * hidden), slotOf(pair) * hidden);
		}
		for (const [i, row] of away.entries()) summed[row] = answer.summed[i]!;
		const missing = remote.settle(this.#layer, answer, hidden, topK);
		for (const pair of missing) summed[away[Math.floor(pair / topK)]!] = 0;
		await this.#computeInto(values, rows, routes, missing.map(slotOf));
		stopwatch.lap("expertsMs");
		return { values, summed };
	}

	/** Computes some slots and writes each vector to its place. */
	async #computeInto(
		values: Float32Array,
		rows: Float32Array,
		routes: Routes,
		slots: readonly number[],
	): Promise<void> {
		if (slots.length === 0) return;
		const { hidden } = this.#shape;
		const vectors = await this.#computeHere(rows, routes, slots);
		for (const [i, slot] of slots.entries()) {
			values.set(vectors.subarray(i * hidden, (i + 1) * hidden), slot * hidden);
		}
	}

	/** (slots, hidden), by the local engine. */
	#computeHere(rows: Float32Array, routes: Routes, slots: readonly number[]): Promise<Float32Array> {
		const { hidden, topK, experts } = this.#shape;
		const rowIndex = new Uint16Array(slots.length);
		const expert = new Uint16Array(slots.length);
		for (const [i, slot] of slots.entries()) {
			const row = Math.floor(slot / this.#slots);
			const rank = slot % this.#slots;
			rowIndex[i] = row;
			expert[i] = rank === topK ? experts : routes.expert[row * topK + rank]!;
		}
		const rowCount = routes.expert.length / topK;
		const values = rows.subarray(0, rowCount * hidden);
		return this.#parts.local.compute({
			layer: this.#layer,
			rowCount,
			rows: { dtype: "f32", values },
			rowIndex,
			expert,
		});
	}
}

/** All slots but the routed ones of the rows `away`. */
function slotsBesides(away: readonly number[], rowCount: number, topK: number): number[] {
	const absent = new Set(away);
	const slots: number[] = [];
	for (let row = 0; row < rowCount; row++) {
		for (let rank = absent.has(row) ? topK : 0; rank <= topK; rank++) slots.push(row * (topK + 1) + rank);
	}
	return slots;
}
