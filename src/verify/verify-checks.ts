import type { VerifyReport } from "./report.ts";

/** One thing that verify compares, with its figures in words. */
export interface VerifyCheck {
	readonly name: string;
	readonly passed: boolean;
	readonly detail: string;
}

/** What was compared, one by one; together they are the verdict. */
export function verifyChecks(report: VerifyReport): VerifyCheck[] {
	const { remote, tokens, argmax, logits, partials, verdict } = report;
	const close = verdict === "identical" || verdict === "equivalent";
	const checks: VerifyCheck[] = [
		check("tokens", tokens.same === tokens.total, `${tokens.same} of ${tokens.total} the same`),
		check("argmax", argmax.same === argmax.total, `${argmax.same} of ${argmax.total} positions the same`),
		check(
			"logits",
			logits.identical || (verdict !== "different" && logits.cosineMin >= 0.99),
			logits.identical ? "identical" : `least cosine ${logits.cosineMin}, largest difference ${logits.maxAbs}`,
		),
	];
	if (remote.layers.length > 0) {
		checks.push(
			check(
				"partials",
				partials.identical === partials.pairs || verdict === "equivalent",
				`${partials.identical} of ${partials.pairs} identical, worst ${partials.worst}`,
			),
			check(
				"coverage",
				close || (remote.answered === remote.asked && remote.fallback === 0 && verdict !== "incomplete"),
				`${remote.answered} of ${remote.asked} pairs answered, ${remote.fallback} computed here, ${remote.retried} retried`,
			),
		);
	}
	checks.push(check("verdict", close, verdictText(report)));
	return checks;
}

/** The verdict in one line, with the place of the first divergence. */
export function verdictText({ verdict, firstDivergence }: VerifyReport): string {
	if (firstDivergence === null) return verdict;
	const { prompt, position, layer, expert, worker, local, remote } = firstDivergence;
	const place = [
		`prompt ${JSON.stringify(prompt)}`,
		`position ${position}`,
		...(layer === null ? [] : [`layer ${layer}`]),
		...(expert === null ? [] : [`expert ${expert}`]),
		...(worker === null ? [] : [`worker ${worker}`]),
	];
	return `${verdict}, first at ${place.join(", ")}: ${local} here, ${remote} there`;
}

function check(name: string, passed: boolean, detail: string): VerifyCheck {
	return { name, passed, detail };
}
