import { KvasirError } from "../errors.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import type { Random } from "../io/random.ts";
import type { Model } from "../model/model.ts";
import type { ExpertWeights } from "../model/weight-matrix.ts";
import type { ExpertRange } from "../protocol/messages.ts";
import { expertsOf, type HeldExperts } from "./held-experts.ts";

/** Bytes of one expert in the model's file. */
export function expertBytes({ gate, up, down }: ExpertWeights): number {
	return gate.bytes.length + up.bytes.length + down.bytes.length;
}

/**
 * Which experts fit `memoryBytes` when nobody says which: the same run in every layer, so that a row often finds all its experts
 * here, starting at a random one, so that workers who were told nothing do not all hold the same.
 */
export function planHoldings(
	{ layers, experts }: { readonly layers: number; readonly experts: number },
	bytesEach: number,
	memoryBytes: number,
	random: Random,
): ExpertRange[] {
	const fitting = Math.floor(memoryBytes / bytesEach);
	const perLayer = Math.min(experts, Math.floor(fitting / layers));
	if (perLayer === 0) {
		return Array.from({ length: Math.min(layers, fitting) }, (_, layer) => ({ layer, first: 0, count: 1 }));
	}
	const first = Math.floor(random.uniform() * (experts - perLayer + 1));
	return Array.from({ length: layers }, (_, layer) => ({ layer, first, count: perLayer }));
}

export interface LoadOptions {
	readonly model: Pick<Model, "weights">;
	readonly engine: ExpertEngine;
	readonly held: HeldExperts;
	/** True: hold what fits. False: not fitting is an error. */
	readonly asMuchAsFits: boolean;
	readonly signal?: AbortSignal | undefined;
	readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Loads experts in order, those already held excepted. Throws what the engine and the weights throw, `out_of_memory` with a hint. */
export async function loadExperts(
	ranges: readonly ExpertRange[],
	{ model, engine, held, asMuchAsFits, signal, onProgress }: LoadOptions,
): Promise<void> {
	const total = ranges.reduce((sum, { count }) => sum + count, 0);
	let done = 0;
	for (const [layer, expert] of expertsOf(ranges)) {
		signal?.throwIfAborted();
		if (!held.has(layer, expert)) {
			try {
				await engine.load(layer, expert, await model.weights.expert(layer, expert));
			} catch (error) {
				if (!(error instanceof KvasirError) || error.code !== "out_of_memory") throw error;
				if (asMuchAsFits && done > 0) return;
				throw new KvasirError("out_of_memory", error.message, {
					cause: error,
					hint: "Hold fewer experts (--hold all:0-63) or allow more memory (--memory)",
					facts: { loaded: done, asked: total },
				});
			}
			held.add(layer, expert);
		}
		done++;
		onProgress?.(done, total);
	}
}

/** Makes the held set what is wanted: forgets first, so that memory is free for what comes. */
export async function changeHoldings(wanted: readonly ExpertRange[], options: LoadOptions): Promise<void> {
	const { engine, held } = options;
	const keep = new Set([...expertsOf(wanted)].map(([layer, expert]) => `${layer}:${expert}`));
	for (const [layer, expert] of expertsOf(held.ranges())) {
		if (keep.has(`${layer}:${expert}`)) continue;
		held.delete(layer, expert);
		await engine.unload(layer, expert);
	}
	await loadExperts(wanted, options);
}
