import { KvasirError } from "../errors.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import type { ExpertRange } from "../protocol/messages.ts";
import type { ExpertSource } from "./expert-source.ts";
import { expertsOf, type HeldExperts } from "./held-experts.ts";

/** Experts on their way at once: one is loaded while the next ones come. */
const atOnce = 3;

export interface LoadOptions {
	readonly source: ExpertSource;
	readonly engine: ExpertEngine;
	readonly held: HeldExperts;
	/** True: hold what fits. False: not fitting is an error. */
	readonly asMuchAsFits: boolean;
	readonly signal: AbortSignal;
	readonly onProgress?: ((done: number, total: number) => void) | undefined;
	/** After each expert that is ready. */
	readonly onLoaded?: (() => void) | undefined;
}

/**
 * Loads experts in order, those already held excepted, some at once. True when all are held; false when memory, with `asMuchAsFits`, ended it.
 * Throws the first that the engine or the source throws: `out_of_memory` with a hint, `disk_full`, `model_mismatch`, ...; what was ready stays.
 */
export async function loadExperts(ranges: readonly ExpertRange[], options: LoadOptions): Promise<boolean> {
	const { held, signal, onProgress } = options;
	const all = [...expertsOf(ranges)];
	const missing = all.filter(([layer, expert]) => !held.has(layer, expert));
	let done = all.length - missing.length;
	let full = false;
	const stop = new AbortController();
	const either = AbortSignal.any([signal, stop.signal]);
	const queue = missing.values();

	async function work(): Promise<void> {
		for (const [layer, expert] of queue) {
			either.throwIfAborted();
			const loaded = await loadOne(layer, expert, either, options);
			if (!loaded) {
				if (!options.asMuchAsFits || held.count === 0) throw tooMuch(held.count, all.length);
				full = true;
				// The others stop too: what comes would not fit either.
				for (const _ of queue);
				return;
			}
			onProgress?.(++done, all.length);
		}
	}
	const failing = async () => {
		try {
			await work();
		} catch (error) {
			stop.abort(error);
			throw error;
		}
	};
	const ends = await Promise.allSettled(Array.from({ length: atOnce }, failing));
	const failed = ends.find(({ status }) => status === "rejected") as PromiseRejectedResult | undefined;
	if (failed !== undefined) throw signal.aborted ? signal.reason : (stop.signal.reason ?? failed.reason);
	return !full;
}

/** False: there is no memory for it. */
async function loadOne(layer: number, expert: number, signal: AbortSignal, options: LoadOptions): Promise<boolean> {
	const { source, engine, held, onLoaded } = options;
	const weights = await source.expert(layer, expert, signal);
	signal.throwIfAborted();
	try {
		await engine.load(layer, expert, weights);
	} catch (error) {
		if (error instanceof KvasirError && error.code === "out_of_memory") return false;
		throw error;
	}
	if (signal.aborted) {
		// It may be of a model or manifest that counts no more.
		await engine.unload(layer, expert);
		throw signal.reason;
	}
	held.add(layer, expert);
	onLoaded?.();
	return true;
}

/** Makes the held set what is wanted: forgets first, so that memory is free for what comes. Returns and throws as `loadExperts`. */
export async function changeHoldings(wanted: readonly ExpertRange[], options: LoadOptions): Promise<boolean> {
	const { engine, held } = options;
	const keep = new Set([...expertsOf(wanted)].map(([layer, expert]) => `${layer}:${expert}`));
	for (const [layer, expert] of expertsOf(held.ranges())) {
		if (keep.has(`${layer}:${expert}`)) continue;
		held.delete(layer, expert);
		await engine.unload(layer, expert);
	}
	return loadExperts(wanted, options);
}

function tooMuch(loaded: number, asked: number): KvasirError {
	return new KvasirError("out_of_memory", `Cannot hold ${asked} experts: after ${loaded} the memory is full`, {
		hint: "Hold fewer experts (--hold all:0-63) or allow more memory (--memory)",
		facts: { loaded, asked },
	});
}
