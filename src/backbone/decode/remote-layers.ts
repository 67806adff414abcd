import { KvasirError } from "../../errors.ts";
import { allFinite } from "../../experts/finite.ts";
import { quantiseRows } from "../../experts/quantise-rows.ts";
import type { RemoteAnswer, RemoteExperts, RemoteRequest } from "../remote.ts";
import type { LocalExperts } from "./local-experts.ts";
import { PartialsCheck } from "./partials-check.ts";
import type { Routes } from "./router.ts";
import type { Step } from "./step.ts";

/** What became of the pairs that were asked for elsewhere. */
export interface RemoteCounts {
	/** Distinct (row, expert) pairs asked for. */
	asked: number;
	answered: number;
	/** Pairs computed here because nobody answered. */
	fallback: number;
	/** Pairs that were asked again of another holder. */
	retried: number;
	/** Requests, one per layer and step. */
	roundTrips: number;
	/** Unanswered pairs by reason. */
	readonly failures: Record<string, number>;
}

export interface RemotePolicy {
	readonly remote: Pick<RemoteExperts, "request">;
	readonly layers: ReadonlySet<number>;
	/** Whether prompt rows are asked for elsewhere too. @default true */
	readonly prefill?: boolean;
	/** Fails with `remote_required` rather than compute a pair here. @default false */
	readonly require?: boolean;
	/** Recompute every partial here and compare. @default false */
	readonly checkPartials?: boolean;
	/** Whether a layer's rows may travel as activation blocks (q14): its gate and up are block-quantised. @default no layer's */
	readonly quantisable?: (layer: number) => boolean;
}

/** Asks for experts elsewhere, and accounts for what came back. */
export class RemoteLayers {
	readonly counts: RemoteCounts = { asked: 0, answered: 0, fallback: 0, retried: 0, roundTrips: 0, failures: {} };
	/** Compares what comes back; null: not asked for. */
	readonly check: PartialsCheck | null;
	readonly #policy: RemotePolicy;

	constructor(policy: RemotePolicy, local: LocalExperts) {
		this.#policy = policy;
		this.check = policy.checkPartials ? new PartialsCheck(local) : null;
	}

	/** The rows of a step whose experts of this layer are computed elsewhere. */
	rowsOf(layer: number, step: Step): number[] {
		if (!this.#policy.layers.has(layer)) return [];
		const all = [...step.chunkOfRow.keys()];
		if (this.#policy.prefill !== false) return all;
		return all.filter((row) => step.chunks[step.chunkOfRow[row]!]!.phase === "decode");
	}

	/** The request for all experts of `rows`: a copy, so that its buffers may move to another thread. */
	requestFor(layer: number, rows: readonly number[], values: Float32Array, routes: Routes, step: Step): RemoteRequest {
		const { topK } = routes;
		const hidden = values.length / step.count;
		const request = {
			layer,
			rowCount: rows.length,
			rows: new Float32Array(rows.length * hidden),
			rowIndex: new Uint16Array(rows.length * topK),
			expert: new Uint16Array(rows.length * topK),
			weight: new Float32Array(rows.length * topK),
			phase: rows.some((row) => chunkOf(step, row).phase === "decode") ? ("decode" as const) : ("prefill" as const),
			sequence: rows.map((row) => chunkOf(step, row).sequence.id),
		};
		for (const [i, row] of rows.entries()) {
			request.rows.set(values.subarray(row * hidden, (row + 1) * hidden), i * hidden);
			request.rowIndex.fill(i, i * topK, (i + 1) * topK);
			request.expert.set(routes.expert.subarray(row * topK, (row + 1) * topK), i * topK);
			request.weight.set(routes.weight.subarray(row * topK, (row + 1) * topK), i * topK);
		}
		if (!this.#policy.quantisable?.(layer)) return request;
		return { ...request, quantised: quantiseRows(request.rows, rows.length, hidden) };
	}

	/** Asks; what workers do wrong is an unanswered pair, not an error. */
	async ask(request: RemoteRequest, rows: readonly number[], step: Step): Promise<RemoteAnswer> {
		const kept = this.check ? structuredClone(request) : request; // the request's buffers may move away
		const pairs = request.expert.length;
		this.counts.asked += pairs;
		this.counts.roundTrips += 1;
		const answer = await this.#policy.remote.request(request);
		await this.check?.check({ request: kept, answer, positions: rows.map((row) => step.positionOfRow[row]!) });
		return answer;
	}

	/**
	 * Counts what an answer holds, and returns the pairs to compute here: those nobody answered, and those of a vector that is
	 * not finite (all pairs of the row where it is a sum). Throws `remote_required`.
	 */
	settle(layer: number, answer: RemoteAnswer, hidden: number, topK: number): number[] {
		const spoiled = new Set<number>();
		for (let pair = 0; pair < answer.worker.length; pair++) {
			if (answer.worker[pair]! < 0 || allFinite(answer.vectors.subarray(pair * hidden, (pair + 1) * hidden))) continue;
			const row = Math.floor(pair / topK);
			const [first, end] = answer.summed[row] ? [row * topK, (row + 1) * topK] : [pair, pair + 1];
			for (let other = first; other < end; other++) spoiled.add(other);
		}
		const missing = [...answer.worker.keys()].filter((pair) => answer.worker[pair]! < 0 || spoiled.has(pair));
		this.#count(answer, missing.length, spoiled.size);
		if (missing.length > 0 && this.#policy.require) {
			const state = `${missing.length} of ${answer.worker.length} pairs of layer ${layer} were not answered`;
			throw new KvasirError("remote_required", `Cannot decode without the swarm: ${state}`, {
				hint: "without --require-remote they are computed here",
				facts: { layer, pairs: missing.length, failures: answer.failures },
			});
		}
		this.counts.fallback += missing.length;
		return missing;
	}

	#count(answer: RemoteAnswer, missing: number, spoiled: number): void {
		const { counts } = this;
		const fail = (reason: string, pairs: number) => {
			counts.failures[reason] = (counts.failures[reason] ?? 0) + pairs;
		};
		for (const { reason, pairs } of answer.failures) fail(reason, pairs);
		if (spoiled > 0) fail("non_finite_result", spoiled);
		counts.answered += answer.worker.length - missing;
		counts.retried += answer.retried;
	}
}

function chunkOf(step: Step, row: number) {
	return step.chunks[step.chunkOfRow[row]!]!;
}
