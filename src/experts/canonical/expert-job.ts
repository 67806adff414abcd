import { tensorTypes } from "../../model/weight-matrix.ts";
import type { ExpertBatch } from "../engine.ts";
import { growExchange, Plan } from "./exchange.ts";
import { expertTask, header, jobKinds } from "./job.ts";
import { panelOutputs, tileRows } from "./layout.ts";
import type { LoadedExpert } from "./loaded.ts";

/** Where the answer of a posted job will be. */
export interface Answer {
	readonly at: number;
	readonly values: number;
}

interface Tile {
	readonly expert: LoadedExpert;
	readonly first: number;
	readonly count: number;
}

/** The pairs sorted by expert, cut into tiles of one expert each. */
function sortPairs(batch: ExpertBatch, experts: ReadonlyMap<number, LoadedExpert>) {
	const pairOf = Array.from(batch.expert.keys()).sort((a, b) => batch.expert[a]! - batch.expert[b]! || a - b);
	const tiles: Tile[] = [];
	let rows = 0;
	for (let first = 0; first < pairOf.length; first += rows) {
		const id = batch.expert[pairOf[first]!]!;
		const expert = experts.get(id)!;
		const most = tileRows(Math.max(expert.hidden, expert.width));
		for (rows = 1; rows < most && batch.expert[pairOf[first + rows]!] === id; rows++);
		tiles.push({ expert, first, count: rows });
	}
	return { pairOf, tiles };
}

/** Describes the computation of a batch. All experts of it have the same shape. */
export function postExperts(
	exchange: SharedArrayBuffer,
	batch: ExpertBatch,
	experts: ReadonlyMap<number, LoadedExpert>,
	threads: number,
): Answer {
	const { pairOf, tiles } = sortPairs(batch, experts);
	const { hidden, width } = tiles[0]!.expert;
	const [pairs, { rows, rowCount }] = [pairOf.length, batch];
	const plan = new Plan();
	plan.words(header.words);
	const at = {
		tasks: plan.words(tiles.length * expertTask.words),
		finished: plan.words(tiles.length),
		rowOf: plan.words(pairs),
		pairOf: plan.words(pairs),
		firstPair: plan.words(rowCount + 1),
		weights: batch.weight ? plan.words(pairs) : -1,
		rows: plan.take(rowCount * hidden * (rows.dtype === "f32" ? 4 : 2)),
		scales: rows.dtype === "q14" ? plan.words(rows.scales.length) : -1,
		h: plan.words(pairs * width),
		y: plan.words(pairs * hidden),
		sums: batch.weight ? plan.words(rowCount * hidden) : 0,
	};
	growExchange(exchange, plan.bytes);
	const words = new Int32Array(exchange, 0, plan.bytes / 4);
	const parts = cuts(tiles.length, threads, width);
	words[header.kind] = jobKinds.experts;
	words[header.units] = 2 * tiles.length * parts + (batch.weight ? rowCount : 0);
	words[header.inputs] = hidden;
	words[header.width] = width;
	words[header.rowCount] = rowCount;
	words[header.taskCount] = tiles.length;
	words[header.parts] = parts;
	for (const name of [
		"tasks",
		"finished",
		"rowOf",
		"pairOf",
		"firstPair",
		"weights",
		"rows",
		"scales",
		"h",
		"y",
		"sums",
	] as const) {
		words[header[name]] = at[name];
	}
	writeTables(words, at, batch, pairOf, tiles);
	if (rows.dtype === "f32") new Float32Array(exchange, at.rows, rowCount * hidden).set(rows.values);
	else {
		new Int16Array(exchange, at.rows, rowCount * hidden).set(rows.q);
		new Float32Array(exchange, at.scales, rows.scales.length).set(rows.scales);
	}
	return batch.weight ? { at: at.sums, values: rowCount * hidden } : { at: at.y, values: pairs * hidden };
}

function writeTables(
	words: Int32Array,
	at: { tasks: number; finished: number; rowOf: number; pairOf: number; firstPair: number; weights: number },
	batch: ExpertBatch,
	pairOf: readonly number[],
	tiles: readonly Tile[],
): void {
	words.fill(0, at.finished / 4, at.finished / 4 + tiles.length);
	words.set(pairOf, at.pairOf / 4);
	words.set(
		pairOf.map((pair) => batch.rowIndex[pair]!),
		at.rowOf / 4,
	);
	for (const [i, { expert, first, count }] of tiles.entries()) {
		const { gate, up, down, place } = expert;
		const task = [place.memory, first, count];
		for (const { type, at: offset } of [gate, up, down]) task.push(tensorTypes[type], offset);
		words.set(task, at.tasks / 4 + i * expertTask.words);
	}
	if (!batch.weight) return;
	new Float32Array(words.buffer, at.weights, batch.weight.length).set(batch.weight);
	let pair = 0;
	for (let row = 0; row <= batch.rowCount; row++) {
		while (pair < pairOf.length && batch.rowIndex[pair]! < row) pair++;
		words[at.firstPair / 4 + row] = pair;
	}
}

/** Into how many units a half of a task is cut: enough for all threads, whole panels each. */
function cuts(tasks: number, threads: number, width: number): number {
	if (threads === 1 || tasks >= 8 * threads) return 1;
	return Math.max(1, Math.min(Math.ceil((4 * threads) / tasks), Math.floor(width / panelOutputs)));
}
