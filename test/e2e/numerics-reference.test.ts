import { expect, it } from "vitest";
import { openDecoder } from "../../src/backbone/decode/open-decoder.ts";
import { greedy } from "../../src/backbone/decode/sampler.ts";
import { Scheduler } from "../../src/backbone/decode/scheduler.ts";
import type { ExpertBatch, ExpertEngine } from "../../src/experts/engine.ts";
import type { MatrixEngine } from "../../src/experts/matrices.ts";
import type { EngineName } from "../../src/experts/open-engine.ts";
import { openEnginePair } from "../../src/experts/open-engine-pair.ts";
import { packagePath } from "../../src/io/built.ts";
import { systemClock } from "../../src/io/clock.ts";
import type { Model } from "../../src/model/model.ts";
import { openModel } from "../../src/model/open-model.ts";
import { LogitsComparison } from "../../src/verify/compare-logits.ts";
import { openReference, type ReferenceFile, type ReferencePrompt } from "../../src/verify/reference-file.ts";

// Against what llama.cpp recorded with dequantised weights, teacher-forced along its tokens (docs/numerics.md section 3).

const modelPath = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const recorded = packagePath("fixtures/reference/oracle-Q4_K_M-dequantF32.json");
const positions = 641;
const memoryBytes = 64 * 2 ** 20;

/** Per prompt: its logits (positions, vocab), and the set of experts that each layer chose at each position. */
interface Run {
	readonly logits: readonly Float32Array[];
	readonly choices: readonly (readonly string[])[];
}

it("experts canonical, the rest f32: every argmax, cosine >= 0.999999 and |dlogit| <= 0.02 at every position", async () => {
	await withReference(async (reference, model) => {
		const { logits } = await run(model, reference, { experts: "canonical", matrices: "f32" });
		const comparison = new LogitsComparison();
		await eachRecorded(reference, model, logits, ({ expected, actual }) => void comparison.add(expected, actual));
		const report = comparison.report();
		expect(report).toMatchObject({ positions, argmaxSame: positions });
		expect(report.cosineMin).toBeGreaterThanOrEqual(0.999999);
		expect(report.maxAbs).toBeLessThanOrEqual(0.02);
	});
});

it("all quantised matrices canonical: every argmax, the median >= 1 - 1e-7, >= 1 - 1e-6 until an expert set differs", async () => {
	await withReference(async (reference, model) => {
		const plain = await run(model, reference, { experts: "f32", matrices: "f32" });
		const canonical = await run(model, reference, { experts: "canonical", matrices: "canonical" });
		const comparison = new LogitsComparison();
		let before = 0;
		await eachRecorded(reference, model, canonical.logits, ({ prompt, position, expected, actual }) => {
			comparison.add(expected, actual);
			const differs = plain.choices[prompt]!.findIndex((choice, at) => choice !== canonical.choices[prompt]![at]);
			if (differs !== -1 && position >= differs) return;
			before++;
			const alone = new LogitsComparison();
			alone.add(expected, actual);
			expect(alone.report().cosineMin).toBeGreaterThanOrEqual(1 - 1e-6);
		});
		const report = comparison.report();
		expect(report).toMatchObject({ positions, argmaxSame: positions });
		expect(report.cosineMedian).toBeGreaterThanOrEqual(1 - 1e-7);
		// Most positions, or the sentence above says nothing.
		expect(before).toBeGreaterThan(positions / 2);
	});
});

async function withReference(work: (reference: ReferenceFile, model: Model) => Promise<void>): Promise<void> {
	const reference = await openReference(recorded);
	const model = await openModel(modelPath);
	await work(reference, model);
	await model.weights.close();
	await reference.close();
}

async function run(
	model: Model,
	{ prompts }: ReferenceFile,
	engines: { experts: EngineName; matrices: EngineName },
): Promise<Run> {
	const open = (engine: EngineName) => openEnginePair({ engine, hidden: model.shape.hidden, threads: 1, memoryBytes });
	const [forExperts, forMatrices] = [await open(engines.experts), await open(engines.matrices)];
	const watched = new WatchedExperts(forExperts.experts, model.shape);
	const matrices: MatrixEngine = forMatrices.matrices;
	const decoder = await openDecoder({ model, experts: watched, matrices, clock: systemClock });
	const scheduler = new Scheduler(decoder);
	const logits: Float32Array[] = [];
	const choices: string[][] = [];
	for (const prompt of prompts) {
		logits.push(await forced(scheduler, prompt));
		choices.push(watched.take());
	}
	await scheduler.close();
	await decoder.close();
	await forExperts.close();
	await forMatrices.close();
	return { logits, choices };
}

async function forced(scheduler: Scheduler, { promptTokens, tokens }: ReferencePrompt): Promise<Float32Array> {
	const request = { prompt: promptTokens, maxTokens: tokens.length, forced: tokens, sampling: greedy } as const;
	return (await scheduler.generate({ ...request, logits: "keep" })).logits!;
}

async function eachRecorded(
	reference: ReferenceFile,
	{ shape }: Model,
	logits: readonly Float32Array[],
	visit: (row: { prompt: number; position: number; expected: Float32Array; actual: Float32Array }) => void,
): Promise<void> {
	for (const [prompt, { rows }] of reference.prompts.entries()) {
		for (const [position, row] of rows) {
			const actual = logits[prompt]!.subarray(position * shape.vocab, (position + 1) * shape.vocab);
			visit({ prompt, position, expected: await reference.row(row), actual });
		}
	}
}

/** An engine, and which experts each row asked of it. */
class WatchedExperts implements ExpertEngine {
	readonly engineClass: string;
	readonly #engine: ExpertEngine;
	readonly #shape: Model["shape"];
	/** Per layer and position: the sorted ids. */
	#chosen: string[][] = [];

	constructor(engine: ExpertEngine, shape: Model["shape"]) {
		this.engineClass = engine.engineClass;
		this.#engine = engine;
		this.#shape = shape;
	}

	/** Per position: the choices of all layers. Starts anew. */
	take(): string[] {
		const [first = []] = this.#chosen;
		const all = first.map((_, position) => this.#chosen.map((layer) => layer[position]).join(" "));
		this.#chosen = [];
		return all;
	}

	compute(batch: ExpertBatch): Promise<Float32Array> {
		const { layer, rowCount, rowIndex, expert } = batch;
		const rows = Array.from({ length: rowCount }, (): number[] => []);
		for (const [pair, id] of expert.entries()) if (id < this.#shape.experts) rows[rowIndex[pair]!]!.push(id);
		this.#chosen[layer] ??= [];
		this.#chosen[layer].push(...rows.map((ids) => ids.sort((a, b) => a - b).join(",")));
		return this.#engine.compute(batch);
	}

	get bytesHeld(): number {
		return this.#engine.bytesHeld;
	}

	load(...args: Parameters<ExpertEngine["load"]>): Promise<void> {
		return this.#engine.load(...args);
	}

	unload(layer: number, expert: number): Promise<void> {
		return this.#engine.unload(layer, expert);
	}

	has(layer: number, expert: number): boolean {
		return this.#engine.has(layer, expert);
	}

	close(): Promise<void> {
		return this.#engine.close();
	}
}
