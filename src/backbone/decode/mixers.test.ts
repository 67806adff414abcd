import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../test/support/long.ts";
import { plainAttention, plainDeltaNet } from "../../../test/support/plain-mixers.ts";
import { oddDims, type RandomDims, shapeOfDims } from "../../../test/support/random-model.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import type { MatrixEngine } from "../../experts/matrices.ts";
import type { Model } from "../../model/model.ts";
import type { ModelShape } from "../../model/shape.ts";
import { loadAttention } from "./attention.ts";
import { loadDeltaNet } from "./delta-net.ts";
import type { Mixer, MixerSpan } from "./mixer.ts";
import { openTextMemory } from "./open-text-memory.ts";
import { Sequence } from "./sequence.ts";
import type { TextMemory } from "./text-memory.ts";

// The mixers alone, on random projections: against plain loops in binary64, and against themselves in other company.

const engine: MatrixEngine = {
	engineClass: "none",
	group: async () => ({ multiply: async () => [], close: async () => {} }),
};

interface Scene {
	readonly shape: ModelShape;
	readonly memory: TextMemory;
	readonly mixers: { readonly deltaNet: Mixer; readonly attention: Mixer };
	/** Of the layers 0, delta net, and 1, attention. */
	readonly floats: ReadonlyMap<string, Float32Array>;
	random(count: number, scale?: number): Float32Array;
}

async function scene(
	dims: Partial<RandomDims>,
	seed: number,
	open = (shape: ModelShape) => openTextMemory(shape),
): Promise<Scene> {
	const shape = shapeOfDims({ ...oddDims, layers: 2, interval: 2, ...dims });
	const { uniform } = seededRandom(seed);
	const random = (count: number, scale = 1) => Float32Array.from({ length: count }, () => scale * (2 * uniform() - 1));
	const { keyHeads, valueHeads, headDim, convKernel } = shape.deltaNet;
	const floats = new Map([
		["blk.0.ssm_conv1d.weight", random((2 * keyHeads + valueHeads) * headDim * convKernel)],
		["blk.0.ssm_a", random(valueHeads).map((value) => -Math.exp(value))],
		["blk.0.ssm_dt.bias", random(valueHeads)],
		["blk.0.ssm_norm.weight", random(headDim)],
		["blk.1.attn_q_norm.weight", random(shape.attention.headDim, 2)],
		["blk.1.attn_k_norm.weight", random(shape.attention.headDim, 2)],
	]);
	const weights = { floats: async (name: string) => floats.get(name)!, matrix: async () => null };
	const model = { shape, weights } as unknown as Model;
	const memory = open(shape);
	const mixers = {
		deltaNet: await loadDeltaNet(model, 0, engine, memory),
		attention: await loadAttention(model, 1, engine, memory),
	};
	return { shape, memory, mixers, floats, random };
}

type Kind = keyof Scene["mixers"];

/** Widths of the projections into a mixer. */
function widthsOf({ deltaNet, attention }: ModelShape, kind: Kind): number[] {
	if (kind === "attention") {
		const row = attention.kvHeads * attention.headDim;
		return [2 * attention.heads * attention.headDim, row, row];
	}
	const { keyHeads, valueHeads, headDim } = deltaNet;
	return [(2 * keyHeads + valueHeads) * headDim, valueHeads * headDim, valueHeads, valueHeads];
}

interface Text {
	readonly tokens: number;
	/** One (tokens, width) array per projection. */
	readonly projected: readonly Float32Array[];
	readonly mixed: Float32Array;
	readonly sequence: Sequence;
}

function textOf({ shape, memory, mixers, random }: Scene, kind: Kind, tokens: number): Text {
	return {
		tokens,
		projected: widthsOf(shape, kind).map((width) => random(tokens * width, 3)),
		mixed: new Float32Array(tokens * mixers[kind].width),
		sequence: new Sequence(1, shape, memory),
	};
}

/** The same projections, nothing mixed yet. */
function again({ shape, memory }: Scene, text: Text): Text {
	return { ...text, mixed: new Float32Array(text.mixed.length), sequence: new Sequence(2, shape, memory) };
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
	return Buffer.from(buffer, byteOffset, byteLength);
}

/** Mixes the next rows of some texts as one step. */
function mixStep({ shape, mixers }: Scene, kind: Kind, chunks: readonly { text: Text; tokens: number }[]): void {
	const mixer = mixers[kind];
	const spans: MixerSpan[] = [];
	let count = 0;
	for (const { text, tokens } of chunks) {
		text.sequence.makeRoom(tokens);
		spans.push({ sequence: text.sequence, firstRow: count, tokens });
		count += tokens;
	}
	const gathered = widthsOf(shape, kind).map((width, part) => {
		const rows = new Float32Array(count * width);
		for (const [i, { text, tokens }] of chunks.entries()) {
			const first = text.sequence.length;
			rows.set(text.projected[part]!.subarray(first * width, (first + tokens) * width), spans[i]!.firstRow * width);
		}
		return rows;
	});
	const mixed = new Float32Array(count * mixer.width);
	mixer.mix(gathered, spans, mixed);
	for (const [i, { text, tokens }] of chunks.entries()) {
		const from = spans[i]!.firstRow * mixer.width;
		text.mixed.set(mixed.subarray(from, from + tokens * mixer.width), text.sequence.length * mixer.width);
		text.sequence.length += tokens;
	}
}

function rowsOf(values: Float32Array, count: number): number[][] {
	const width = values.length / count;
	return Array.from({ length: count }, (_, row) => [...values.subarray(row * width, (row + 1) * width)]);
}

function plain({ shape, floats }: Scene, kind: Kind, { projected, tokens }: Text): number[] {
	const [first, second, third, fourth] = projected.map((values) => rowsOf(values, tokens));
	const get = (name: string) => floats.get(name)!;
	if (kind === "attention") {
		const norms = { q: get("blk.1.attn_q_norm.weight"), k: get("blk.1.attn_k_norm.weight") };
		return plainAttention(shape, norms, { queries: first!, k: second!, v: third! }).flat();
	}
	const weights = {
		conv: get("blk.0.ssm_conv1d.weight"),
		decay: get("blk.0.ssm_a"),
		timeStep: get("blk.0.ssm_dt.bias"),
		norm: get("blk.0.ssm_norm.weight"),
	};
	return plainDeltaNet(shape, weights, { qkv: first!, z: second!, b: third!, a: fourth! }).flat();
}

function expectClose(got: Float32Array, expected: readonly number[], tolerance: number): void {
	const scale = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
	const off = got.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
	expect(got.length).toBe(expected.length);
	expect(off / scale).toBeLessThan(tolerance);
}

const large = { heads: 32, kvHeads: 2, headDim: 256, rotaryDims: 64, keyHeads: 16, valueHeads: 64, stateDim: 128 };

test.each(["deltaNet", "attention"] as const)("%s with the 122B's heads equals the plain loops", async (kind) => {
	const stage = await scene({ ...large, convKernel: 4 }, 122);
	const text = textOf(stage, kind, kind === "attention" ? 70 : 6);
	mixStep(stage, kind, [{ text, tokens: text.tokens - 1 }]);
	mixStep(stage, kind, [{ text, tokens: 1 }]);
	expectClose(text.mixed, plain(stage, kind, text), 5e-6);
});

const dims = fc
	.record({
		kvHeads: fc.integer({ min: 1, max: 3 }),
		group: fc.integer({ min: 1, max: 4 }),
		headQuarter: fc.integer({ min: 1, max: 9 }),
		pairs: fc.integer({ min: 1, max: 18 }),
		keyHeads: fc.integer({ min: 1, max: 3 }),
		repeat: fc.integer({ min: 1, max: 4 }),
		stateQuarter: fc.integer({ min: 1, max: 9 }),
		convKernel: fc.integer({ min: 1, max: 5 }),
	})
	.map(({ kvHeads, group, headQuarter, pairs, keyHeads, repeat, stateQuarter, convKernel }) => ({
		heads: kvHeads * group,
		kvHeads,
		headDim: 4 * headQuarter,
		rotaryDims: 2 * Math.min(pairs, 2 * headQuarter),
		keyHeads,
		valueHeads: keyHeads * repeat,
		stateDim: 4 * stateQuarter,
		convKernel,
	}));
const kinds = fc.constantFrom<Kind>("deltaNet", "attention");

test("any shape equals the plain loops", async () => {
	await fc.assert(
		fc.asyncProperty(
			dims,
			kinds,
			fc.integer({ min: 1, max: 40 }),
			fc.integer({ min: 1 }),
			async (shape, kind, tokens, seed) => {
				const stage = await scene(shape, seed);
				const text = textOf(stage, kind, tokens);
				mixStep(stage, kind, [{ text, tokens }]);
				expectClose(text.mixed, plain(stage, kind, text), 2e-5);
			},
		),
		{ numRuns: runs(40, 2000) },
	);
});

test("a row's bits do not depend on how its text was cut, nor on who shares the step", async () => {
	const cuts = fc.array(fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 3, maxLength: 3 }), { maxLength: 12 });
	await fc.assert(
		fc.asyncProperty(dims, kinds, cuts, fc.integer({ min: 1 }), async (shape, kind, steps, seed) => {
			const stage = await scene(shape, seed);
			const lengths = [0, 1, 2].map((i) => steps.reduce((sum, step) => sum + step[i]!, 1));
			const texts = lengths.map((tokens) => textOf(stage, kind, tokens));
			for (const step of [...steps, [1, 1, 1]]) {
				const chunks = step.map((tokens, i) => ({ text: texts[i]!, tokens })).filter(({ tokens }) => tokens > 0);
				if (chunks.length > 0) mixStep(stage, kind, chunks);
			}
			for (const text of texts) {
				const alone = again(stage, text);
				for (let token = 0; token < text.tokens; token++) mixStep(stage, kind, [{ text: alone, tokens: 1 }]);
				expect(bytesOf(alone.mixed).equals(bytesOf(text.mixed))).toBe(true);
				alone.sequence.release();
				text.sequence.release();
			}
			expect(stage.memory.bytesHeld).toBe(0);
		}),
		{ numRuns: runs(40, 2000) },
	);
});

test("texts in several memories, and steps of more rows than the work space holds, are mixed to the same bits", async () => {
	const small = (shape: ModelShape) => openTextMemory({ ...shape, contextLength: 150 }, { eachBytes: 0 });
	const stage = await scene({ ...large, keyHeads: 8, valueHeads: 32 }, 7, small);
	for (const kind of ["deltaNet", "attention"] as const) {
		const text = textOf(stage, kind, 150);
		mixStep(stage, kind, [{ text, tokens: text.tokens }]);
		const copies = Array.from({ length: 5 }, () => again(stage, text));
		for (const tokens of [40, 110])
			mixStep(
				stage,
				kind,
				copies.map((copy) => ({ text: copy, tokens })),
			);
		expect(stage.memory.memoryCount).toBeGreaterThan(1);
		for (const copy of copies) {
			expect(bytesOf(copy.mixed).equals(bytesOf(text.mixed))).toBe(true);
			copy.sequence.release();
		}
		text.sequence.release();
		expect([stage.memory.bytesHeld, stage.memory.memoryCount]).toEqual([0, 1]);
	}
});
