import { batchOf, expectedAnswer, firstWrongVector } from "../backbone/pay/compare-answer.ts";
import { type Evidence, evidenceBytesMax, parseEvidence } from "../backbone/pay/evidence.ts";
import { KvasirError } from "../errors.ts";
import type { ExpertBatch } from "../experts/engine.ts";
import { readSmallFile } from "../io/files.ts";
import { floatsOfTensor } from "../protocol/tensor.ts";

/** What a replayed audit says. */
export interface EvidenceReport {
	readonly worker: string;
	readonly engineClass: string;
	readonly layer: number;
	/** Of the first wrong vector; null: none is wrong, or it is the sum of a row. */
	readonly expert: number | null;
	/** The recomputation here equals the one the backbone stored. */
	readonly reproduced: boolean;
	/** `wrong`: the worker's answer is not what this machine computes; `right`: it is, and the audit was mistaken. */
	readonly verdict: "wrong" | "right";
}

/** Reads a failed audit from a file. Throws `file_missing`, `bad_file`. */
export async function readEvidence(path: string): Promise<Evidence> {
	const bytes = await readSmallFile(path, evidenceBytesMax);
	if (bytes === null) throw new KvasirError("file_missing", `Cannot read the evidence ${path}: no such file`);
	return parseEvidence(bytes.toString("utf8"));
}

/**
 * Computes the pairs of a failed audit again, from this machine's own file, and compares. Throws `model_mismatch` for another model.
 *
 * @param own the model and the engine here, and what computes pairs with them
 */
export async function replayEvidence(
	evidence: Evidence,
	own: {
		readonly modelId: Uint8Array;
		readonly engineClass: string;
		readonly compute: (batch: Omit<ExpertBatch, "weight">) => Promise<Float32Array>;
	},
): Promise<EvidenceReport> {
	const { model, asked, worker, engineClass, auditedBy } = evidence;
	const found = Buffer.from(own.modelId).toString("hex");
	if (found !== model.modelId) {
		throw new KvasirError("model_mismatch", `Cannot replay the evidence: it is of ${model.name} ${model.modelId}`, {
			hint: "Name the model's file with --model",
			facts: { found, expected: model.modelId },
		});
	}
	const { hidden } = model;
	const answer = floatsOfTensor(evidence.answer);
	const stored = floatsOfTensor(evidence.expected);
	const expected = expectedAnswer(asked, await own.compute(batchOf(asked, hidden)), hidden);
	if (answer.length !== expected.length || stored.length !== expected.length) {
		throw new KvasirError("bad_file", "Cannot replay the evidence: its answers are not of the size that was asked");
	}
	const wrong = firstWrongVector(expected, answer, hidden, isExact(own.engineClass, engineClass));
	return {
		worker,
		engineClass,
		layer: asked.layer,
		expert: wrong >= 0 && asked.mode === 0 ? asked.expert[wrong]! : null,
		reproduced: firstWrongVector(expected, stored, hidden, isExact(own.engineClass, auditedBy)) < 0,
		verdict: wrong >= 0 ? "wrong" : "right",
	};
}

function isExact(here: string, there: string): boolean {
	return here === there && !here.startsWith("ort:");
}
