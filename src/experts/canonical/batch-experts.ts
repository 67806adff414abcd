import { KvasirError } from "../../errors.ts";
import { tensorTypes } from "../../model/weight-matrix.ts";
import type { ExpertBatch } from "../engine.ts";
import { isQuantised } from "./layout.ts";
import type { LoadedExpert } from "./loaded.ts";

/**
 * The experts a batch names, of those held for its layer. Throws `engine_failed` when one is not loaded, `bounds` when rows or pairs
 * do not fit, `unsupported_shape` when the experts differ, `unsupported_type` for quantised rows and float weights.
 */
export function expertsOf(
	batch: ExpertBatch,
	held: ReadonlyMap<number, LoadedExpert> | undefined,
): ReadonlyMap<number, LoadedExpert> {
	const { layer } = batch;
	const experts = new Map<number, LoadedExpert>();
	for (const id of batch.expert) {
		const expert = held?.get(id);
		if (!expert) throw new KvasirError("engine_failed", `Cannot compute: expert ${id} of layer ${layer} is not loaded`);
		experts.set(id, expert);
	}
	const first = experts.values().next().value;
	if (!first) return experts;
	for (const expert of experts.values()) {
		if (expert.hidden !== first.hidden || expert.width !== first.width) {
			throw new KvasirError("unsupported_shape", `Cannot compute: the experts of layer ${layer} differ in shape`);
		}
		if (batch.rows.dtype === "q14" && !readsQuantised(expert)) {
			throw new KvasirError(
				"unsupported_type",
				`Cannot compute: quantised rows for the float weights of layer ${layer}`,
			);
		}
	}
	if (!fits(batch, first.hidden)) {
		throw new KvasirError(
			"bounds",
			`Cannot compute: the rows or pairs of a batch of layer ${layer} do not fit its shape`,
		);
	}
	return experts;
}

const readsQuantised = ({ gate, up }: LoadedExpert): boolean =>
	isQuantised(tensorTypes[gate.type]) && isQuantised(tensorTypes[up.type]);

function fits({ rows, rowCount, rowIndex, expert, weight }: ExpertBatch, hidden: number): boolean {
	const values = rows.dtype === "f32" ? rows.values : rows.q;
	if (values.length !== rowCount * hidden) return false;
	if (rows.dtype === "q14" && rows.scales.length !== rowCount * Math.ceil(hidden / 256)) return false;
	if (weight && weight.length !== expert.length) return false;
	return rowIndex.length === expert.length && rowIndex.every((row) => row < rowCount);
}
