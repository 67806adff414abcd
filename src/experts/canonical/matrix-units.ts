import { type Failure, failures, header, matrixUnit, packUnit } from "./job.ts";
import type { JobView } from "./job-view.ts";
import { outputsAtOnce, panelOutputs } from "./layout.ts";

/** Some outputs of one matrix for a tile of rows. */
export function runMatrixUnit(job: JobView, unit: number): Failure {
	const { words } = job;
	const at = words[header.tasks]! / 4 + unit * matrixUnit.words;
	const word = (name: keyof typeof matrixUnit) => words[at + matrixUnit[name]]!;
	const space = job.space(word("memory"));
	const inputs = words[header.inputs]!;
	const [first, count, outputs] = [word("firstRow"), word("rowCount"), word("outputs")];
	const rows = { at: words[header.rows]!, scales: -1, inputs };
	const failure = space.loadTile(word("type"), rows, first, count, (i) => first + i);
	if (failure !== failures.none) return failure;
	const step = outputsAtOnce(count);
	for (let o = word("from"); o < word("to"); o += step) {
		const end = Math.min(word("to"), o + step);
		space.multiply({ type: word("type"), at: word("at") >>> 0, inputs }, count, o, end, "outputs");
		const stride = Math.ceil((end - o) / panelOutputs) * panelOutputs;
		const y = space.address("outputs");
		if (!space.kernel.call.finite(y, count * stride)) return failures.result;
		for (let i = 0; i < count; i++) {
			space.copyOut(y + i * stride * 4, end - o, word("out") + ((first + i) * outputs + o) * 4);
		}
	}
	return failures.none;
}

/** Some rows of a file to panels. */
export function runPackUnit(job: JobView, unit: number): Failure {
	const { words } = job;
	const at = words[header.tasks]! / 4 + unit * packUnit.words;
	const word = (name: keyof typeof packUnit) => words[at + packUnit[name]]!;
	const space = job.space(word("memory"));
	const [rowBytes, outputs, source] = [word("rowBytes"), word("outputs"), space.address("rows")];
	space.clear();
	space.copyIn(word("source"), rowBytes * outputs, source);
	const { pack } = space.kernel.call;
	const bad = pack(word("type"), source, rowBytes, word("inputs"), outputs, word("to") >>> 0, space.address("kernel"));
	return bad === 0 ? failures.none : failures.weights;
}

/** exp32 of a job's values in place: for the self-check, which must see it alone. */
export function runExponentials(job: JobView): Failure {
	const space = job.space(0);
	const [at, count] = [job.words[header.rows]!, job.words[header.inputs]!];
	const stage = space.address("stage");
	space.clear();
	space.copyIn(at, count * 4, stage);
	space.kernel.call.exponentials(stage, stage, count);
	space.copyOut(stage, count, at);
	return failures.none;
}
