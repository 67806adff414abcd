import { weightedSum } from "../../experts/weighted-sum.ts";
import type { RemoteAnswer, RemoteRequest } from "../remote.ts";
import type { LocalExperts } from "./local-experts.ts";

/** A partial may differ by this share of its length, and a little more near zero (numerics.md section 1), in tolerance classes. */
const tolerance = { relative: 0.04, absolute: 1e-6 };

/** One answered request, before anything in it is replaced. */
export interface AnsweredRequest {
	readonly request: RemoteRequest;
	readonly answer: RemoteAnswer;
	/** Per row of the request: its position in its sequence. */
	readonly positions: readonly number[];
}

/** The first vector that was not what this machine computes from the same row. */
export interface PartialDivergence {
	readonly sequence: number;
	readonly position: number;
	readonly layer: number;
	/** null: the sum of a whole row. */
	readonly expert: number | null;
	readonly worker: string;
	/** The first differing component, and its two values. */
	readonly component: number;
	readonly local: number;
	readonly remote: number;
}

/** How the partials that came back compare with a local recomputation of the same rows; pairs nobody answered are left out. */
export interface PartialsReport {
	pairs: number;
	/** Pairs with the same bytes. */
	identical: number;
	/** Pairs within the tolerance of tolerance classes. */
	tolerable: number;
	/** The largest ||remote - local|| / ||local||. */
	worst: number;
	first: PartialDivergence | null;
}

/** Recomputes every partial of an answer here and compares. Changes nothing: a wrong partial is used as it came. */
export class PartialsCheck {
	readonly report: PartialsReport = { pairs: 0, identical: 0, tolerable: 0, worst: 0, first: null };
	readonly #local: LocalExperts;

	constructor(local: LocalExperts) {
		this.#local = local;
	}

	async check({ request, answer, positions }: AnsweredRequest): Promise<void> {
		const { layer, rowCount, rowIndex, expert, weight, sequence } = request;
		const rows = { dtype: "f32", values: request.rows } as const;
		const vectors = await this.#local.compute({ layer, rowCount, rows, rowIndex, expert });
		const hidden = request.rows.length / rowCount;
		const topK = expert.length / rowCount;
		for (let pair = 0; pair < expert.length; pair++) {
			const worker = answer.worker[pair]!;
			if (worker < 0) continue;
			const row = rowIndex[pair]!;
			const isSum = answer.summed[row] === 1;
			if (isSum && pair % topK !== 0) continue;
			const local = vectors.subarray(pair * hidden, (pair + 1) * hidden);
			if (isSum)
				weightedSum(local, 0, hidden, vectors.slice(pair * hidden, (pair + topK) * hidden), 0, weight, pair, topK);
			const remote = answer.vectors.subarray(pair * hidden, (pair + 1) * hidden);
			const component = this.#compare(local, remote, isSum ? topK : 1);
			if (component < 0) continue;
			this.report.first ??= {
				sequence: sequence[row]!,
				position: positions[row]!,
				layer,
				expert: isSum ? null : expert[pair]!,
				worker: answer.workers[worker]!,
				component,
				local: local[component]!,
				remote: remote[component]!,
			};
		}
	}

	/** Counts one vector that stands for `pairs` pairs; returns its first differing component, or -1. */
	#compare(local: Float32Array, remote: Float32Array, pairs: number): number {
		const { report } = this;
		let component = -1;
		let distance = 0;
		let length = 0;
		for (let i = 0; i < local.length; i++) {
			if (component < 0 && !Object.is(local[i], remote[i])) component = i;
			distance += (remote[i]! - local[i]!) ** 2;
			length += local[i]! ** 2;
		}
		report.pairs += pairs;
		if (component < 0) report.identical += pairs;
		const [far, long] = [Math.sqrt(distance), Math.sqrt(length)];
		if (far <= tolerance.relative * long + tolerance.absolute) report.tolerable += pairs;
		if (component >= 0) report.worst = Math.max(report.worst, long > 0 ? far / long : Number.MAX_VALUE);
		return component;
	}
}
