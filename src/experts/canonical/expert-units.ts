import { control, expertTask, type Failure, failures, header } from "./job.ts";
import type { JobView } from "./job-view.ts";
import { outputsAtOnce, panelOutputs } from "./layout.ts";
import type { PackedMatrix } from "./work-space.ts";

// The units of an expert job, in order: for each task `parts` units of h = silu(Wgate x) * (Wup x); for each task `parts` units of
// y = Wdown h; then, for whole rows, one unit a row. A unit of a later kind waits for the units it reads from.

/** Runs unit number `unit`. */
export function runExpertUnit(job: JobView, unit: number): Failure {
	const { words } = job;
	const halfUnits = words[header.taskCount]! * words[header.parts]!;
	if (unit < halfUnits) return firstHalf(job, unit);
	if (unit < 2 * halfUnits) return secondHalf(job, unit - halfUnits);
	job.waitFor(job.control, control.partials, halfUnits);
	return combineRow(job, unit - 2 * halfUnits);
}

/** The part of `outputs` that unit number `part` computes: whole panels. */
function range(job: JobView, part: number, outputs: number): [from: number, to: number] {
	const parts = job.words[header.parts]!;
	const panels = Math.ceil(outputs / panelOutputs);
	const edge = (i: number) => Math.min(outputs, Math.floor((panels * i) / parts) * panelOutputs);
	return [edge(part), part + 1 === parts ? outputs : edge(part + 1)];
}

function taskOf({ words }: JobView, unit: number) {
	const task = Math.floor(unit / words[header.parts]!);
	const at = words[header.tasks]! / 4 + task * expertTask.words;
	const matrix = (word: number, inputs: number): PackedMatrix => ({
		type: words[at + word]!,
		at: words[at + word + 1]! >>> 0,
		inputs,
	});
	return {
		task,
		part: unit % words[header.parts]!,
		memory: words[at + expertTask.memory]!,
		first: words[at + expertTask.first]!,
		count: words[at + expertTask.count]!,
		matrix,
	};
}

function firstHalf(job: JobView, unit: number): Failure {
	const { words } = job;
	const { task, part, memory, first, count, matrix } = taskOf(job, unit);
	const space = job.space(memory);
	const [inputs, width] = [words[header.inputs]!, words[header.width]!];
	const [gate, up] = [matrix(expertTask.gate, inputs), matrix(expertTask.up, inputs)];
	const rows = { at: words[header.rows]!, scales: words[header.scales]!, inputs };
	const rowOf = words.subarray(words[header.rowOf]! / 4 + first);
	const [from, to] = range(job, part, width);
	const step = outputsAtOnce(count);
	for (let o = from; o < to; o += step) {
		const end = Math.min(to, o + step);
		for (const [given, buffer] of [[gate, "outputs"] as const, [up, "outputs2"] as const]) {
			const failure = space.loadTile(given.type, rows, first, count, (i) => rowOf[i]!);
			if (failure !== failures.none) return failure;
			space.multiply(given, count, o, end, buffer);
		}
		const stride = Math.ceil((end - o) / panelOutputs) * panelOutputs;
		const g = space.address("outputs");
		if (!space.kernel.call.swiglu(g, space.address("outputs2"), count * stride)) return failures.result;
		for (let i = 0; i < count; i++) {
			space.copyOut(g + i * stride * 4, end - o, words[header.h]! + ((first + i) * width + o) * 4);
		}
	}
	const finished = words[header.finished]! / 4 + task;
	Atomics.add(words, finished, 1);
	Atomics.notify(words, finished);
	return failures.none;
}

function secondHalf(job: JobView, unit: number): Failure {
	const { words } = job;
	const { task, part, memory, first, count, matrix } = taskOf(job, unit);
	job.waitFor(words, words[header.finished]! / 4 + task, words[header.parts]!);
	if (job.failed()) return failures.none;
	const space = job.space(memory);
	const [hidden, width] = [words[header.inputs]!, words[header.width]!];
	const down = matrix(expertTask.down, width);
	const rows = { at: words[header.h]!, scales: -1, inputs: width };
	const failure = space.loadTile(down.type, rows, first, count, (i) => first + i);
	if (failure !== failures.none) return failures.result;
	const pairOf = words.subarray(words[header.pairOf]! / 4 + first);
	const [from, to] = range(job, part, hidden);
	const step = outputsAtOnce(count);
	for (let o = from; o < to; o += step) {
		const end = Math.min(to, o + step);
		space.multiply(down, count, o, end, "outputs");
		const stride = Math.ceil((end - o) / panelOutputs) * panelOutputs;
		const y = space.address("outputs");
		if (!space.kernel.call.finite(y, count * stride)) return failures.result;
		for (let i = 0; i < count; i++) {
			space.copyOut(y + i * stride * 4, end - o, words[header.y]! + (pairOf[i]! * hidden + o) * 4);
		}
	}
	Atomics.add(job.control, control.partials, 1);
	Atomics.notify(job.control, control.partials);
	return failures.none;
}

/** The weighted sum of one row's partials, in rank order. */
function combineRow(job: JobView, row: number): Failure {
	if (job.failed()) return failures.none;
	const { words } = job;
	const space = job.space(0);
	const hidden = words[header.inputs]!;
	const firstPair = words.subarray(words[header.firstPair]! / 4 + row);
	const weights = new Float32Array(words.buffer, words[header.weights]!);
	const [y, sum] = [space.address("stage"), space.address("rows")];
	space.clear();
	space.kernel.bytes.fill(0, sum, sum + hidden * 4);
	for (let pair = firstPair[0]!; pair < firstPair[1]!; pair++) {
		space.copyIn(words[header.y]! + pair * hidden * 4, hidden * 4, y);
		space.kernel.call.addWeighted(sum, y, weights[pair]!, hidden);
	}
	if (!space.kernel.call.finite(sum, hidden)) return failures.result;
	space.copyOut(sum, hidden, words[header.sums]! + row * hidden * 4);
	return failures.none;
}
