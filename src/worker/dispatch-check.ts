import type { Rows } from "../experts/engine.ts";
import { f16ToF32 } from "../model/half.ts";
import type { Dispatch, ModelFacts, Offer, RefuseCode } from "../protocol/messages.ts";
import { floatsOfTensor, q14OfTensor, tensorBytes } from "../protocol/tensor.ts";
import type { HeldExperts } from "./held-experts.ts";

/** Why a dispatch is not computed: a value, not an exception. */
export interface Refusal {
	readonly code: RefuseCode;
	readonly text: string;
}

export interface DispatchRules {
	readonly model: ModelFacts;
	readonly limits: Offer;
	readonly held: Pick<HeldExperts, "has">;
	readonly engineClass: string;
}

/** Bytes of a dispatch both ways, as floats: what the in-flight limit counts, whatever the encoding. */
export function bytesBothWays(dispatch: Dispatch, hidden: number): number {
	const answers = dispatch.mode === 1 ? dispatch.rowCount : dispatch.expert.length;
	return tensorBytes("f32", dispatch.rowCount + answers, hidden);
}

/** What the codec could not know: is it this model, this worker's experts, within what was agreed? Null: compute it. */
export function checkDispatch(dispatch: Dispatch, { model, limits, held, engineClass }: DispatchRules): Refusal | null {
	const { layer, rowCount, rowIndex, expert, mode, dtype } = dispatch;
	if (rowCount > limits.rowsMax) return { code: "bounds", text: `${rowCount} rows, more than ${limits.rowsMax}` };
	const exact = engineClass.startsWith("canonical-");
	if (dtype === "q14" && !exact)
		return { code: "bounds", text: `q14 is for canonical engines, this is ${engineClass}` };
	if (dtype === "f16" && (exact || engineClass === "f32")) {
		return { code: "bounds", text: `f16 would change the bits of ${engineClass}` };
	}
	if (mode === 1) {
		const whole =
			rowIndex.length === rowCount * model.topK && rowIndex.every((row, i) => row === Math.floor(i / model.topK));
		if (!whole) return { code: "bounds", text: `mode 1 needs all ${model.topK} pairs of each row` };
	}
	for (const id of expert) {
		if (!held.has(layer, id)) return { code: "not_holding", text: `layer ${layer} expert ${id}` };
	}
	return null;
}

/** Copies a dispatch's rows out of the message, once. Throws `bounds` for q14 values out of range. */
export function rowsOf({ dtype, rows, rowCount }: Dispatch, hidden: number): Rows {
	if (dtype === "f32") return { dtype, values: floatsOfTensor(rows) };
	if (dtype === "q14") return { dtype, ...q14OfTensor(rows, rowCount, hidden) };
	const values = new Float32Array(rows.length / 2);
	for (let i = 0; i < values.length; i++) values[i] = f16ToF32(rows[2 * i]! | (rows[2 * i + 1]! << 8));
	return { dtype: "f32", values };
}
