import type { RemoteAnswer, RemoteExperts, RemoteRequest } from "../../src/backbone/remote.ts";
import type { ExpertEngine } from "../../src/experts/engine.ts";
import { openF32Engine } from "../../src/experts/f32/f32-engine.ts";
import { weightedSum } from "../../src/experts/weighted-sum.ts";
import { openModel } from "../../src/model/open-model.ts";

/** A swarm without sockets: an engine of its own answers, and a test may spoil each answer. */
export class EngineRemote implements RemoteExperts {
	readonly requests: RemoteRequest[] = [];
	/** Sum whole rows, as a worker that holds all experts may. */
	wholeRows = false;
	/** Changes an answer before it is given. */
	spoil: (answer: Writable<RemoteAnswer>, request: RemoteRequest) => void = () => {};
	readonly #compute: (request: RemoteRequest) => Promise<Float32Array>;
	readonly #close: () => Promise<void>;

	private constructor(compute: (request: RemoteRequest) => Promise<Float32Array>, close: () => Promise<void>) {
		this.#compute = compute;
		this.#close = close;
	}

	static async open(modelPath: string): Promise<EngineRemote> {
		const model = await openModel(modelPath);
		const engine = await openF32Engine({ hidden: model.shape.hidden });
		const compute = async ({ layer, rowCount, rows, rowIndex, expert }: RemoteRequest) => {
			await loadMissing(engine, layer, expert, (id) => model.weights.expert(layer, id));
			return engine.compute({ layer, rowCount, rows: { dtype: "f32", values: rows }, rowIndex, expert });
		};
		return new EngineRemote(compute, async () => {
			await engine.close();
			await model.weights.close();
		});
	}

	async request(request: RemoteRequest): Promise<RemoteAnswer> {
		this.requests.push(request);
		const answer: Writable<RemoteAnswer> = {
			vectors: await this.#compute(request),
			worker: new Int16Array(request.expert.length),
			summed: new Uint8Array(request.rowCount),
			workers: ["worker-a", "worker-b"],
			retried: 0,
			failures: [],
		};
		if (this.wholeRows) sumRows(answer, request);
		this.spoil(answer, request);
		return answer;
	}

	holds(): boolean {
		return true;
	}

	async close(): Promise<void> {
		await this.#close();
	}
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function sumRows(answer: Writable<RemoteAnswer>, { rowCount, rows, expert, weight }: RemoteRequest): void {
	const hidden = rows.length / rowCount;
	const topK = expert.length / rowCount;
	const vectors = new Float32Array(answer.vectors.length);
	for (let row = 0; row < rowCount; row++) {
		const first = row * topK;
		weightedSum(vectors, first * hidden, hidden, answer.vectors, first * hidden, weight, first, topK);
	}
	answer.vectors = vectors;
	answer.summed.fill(1);
}

async function loadMissing(
	engine: ExpertEngine,
	layer: number,
	experts: Uint16Array,
	weightsOf: (expert: number) => Promise<Parameters<ExpertEngine["load"]>[2]>,
): Promise<void> {
	for (const expert of new Set(experts)) {
		if (!engine.has(layer, expert)) await engine.load(layer, expert, await weightsOf(expert));
	}
}
