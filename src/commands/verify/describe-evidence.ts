import type { EvidenceReport } from "../../verify/evidence.ts";

/** What a replayed audit means, in a line or two. */
export function describeEvidence({ worker, engineClass, layer, expert, reproduced, verdict }: EvidenceReport): string {
	const where = `layer ${layer}${expert === null ? "" : `, expert ${expert}`}`;
	const found =
		verdict === "wrong"
			? `wrong: ${worker} (${engineClass}) answered otherwise than this machine, ${where}`
			: `right: the answer of ${worker} (${engineClass}) is what this machine computes, ${where}; the audit was mistaken`;
	return reproduced ? found : `${found}\nThe recomputation in the evidence is not the one made here`;
}
