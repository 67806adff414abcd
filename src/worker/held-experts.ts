import { KvasirError } from "../errors.ts";
import { limits } from "../protocol/limits.ts";
import type { ExpertRange } from "../protocol/messages.ts";

/** The set of experts ready to serve. */
export class HeldExperts {
	/** Per layer, ids in ascending order only when asked for. */
	readonly #layers = new Map<number, Set<number>>();
	#count = 0;

	get count(): number {
		return this.#count;
	}

	has(layer: number, expert: number): boolean {
		return this.#layers.get(layer)?.has(expert) ?? false;
	}

	add(layer: number, expert: number): void {
		const experts = this.#layers.get(layer) ?? new Set();
		this.#layers.set(layer, experts);
		if (!experts.has(expert)) this.#count++;
		experts.add(expert);
	}

	delete(layer: number, expert: number): void {
		if (this.#layers.get(layer)?.delete(expert)) this.#count--;
	}

	/** As runs, layers ascending. */
	ranges(): ExpertRange[] {
		return [...this.#layers]
			.sort(([a], [b]) => a - b)
			.flatMap(([layer, experts]) => runsOf(experts).map(([first, count]) => ({ layer, first, count })));
	}
}

function runsOf(experts: ReadonlySet<number>): [first: number, count: number][] {
	const runs: [number, number][] = [];
	for (const expert of [...experts].sort((a, b) => a - b)) {
		const last = runs.at(-1);
		if (last !== undefined && last[0] + last[1] === expert) last[1]++;
		else runs.push([expert, 1]);
	}
	return runs;
}

/** Every (layer, expert) of some runs, in their order. */
export function* expertsOf(ranges: readonly ExpertRange[]): Generator<readonly [layer: number, expert: number]> {
	for (const { layer, first, count } of ranges) {
		for (let expert = first; expert < first + count; expert++) yield [layer, expert];
	}
}

/**
 * Reads `--hold LAYERS:FIRST-LAST`: layers `all`, `3`, `0-5`, or a list `0,2-4`; experts `FIRST-LAST`, one number, or `all`.
 * Throws `usage` for what is not that, or is outside the model.
 */
export function parseHold(text: string, model: { readonly layers: number; readonly experts: number }): ExpertRange[] {
	const [layersText, expertsText, ...rest] = text.split(":");
	if (layersText === undefined || expertsText === undefined || rest.length > 0)
		throw badHold(text, "not LAYERS:FIRST-LAST");
	const [first, last] = parseSpan(text, expertsText, Math.min(model.experts, limits.experts), "expert");
	const layers = new Set<number>();
	for (const part of layersText.split(",")) {
		const [from, to] = parseSpan(text, part, Math.min(model.layers, limits.layers), "layer");
		for (let layer = from; layer <= to; layer++) layers.add(layer);
	}
	return [...layers].sort((a, b) => a - b).map((layer) => ({ layer, first, count: last - first + 1 }));
}

function parseSpan(whole: string, text: string, count: number, what: string): [first: number, last: number] {
	if (text === "all") return [0, count - 1];
	const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(text);
	if (match === null) throw badHold(whole, `"${text}" is no ${what}, no range of them, and not "all"`);
	const first = Number(match[1]);
	const last = Number(match[2] ?? match[1]);
	if (last < first) throw badHold(whole, `${first}-${last} runs backwards`);
	if (last >= count) throw badHold(whole, `the model's ${what}s are 0-${count - 1}`);
	return [first, last];
}

function badHold(text: string, state: string): KvasirError {
	return new KvasirError("usage", `Cannot hold "${text}": ${state}`, { hint: "For example --hold all:0-127" });
}
