import { formatCounted } from "../io/format-amounts.ts";
import type { VerifyReport } from "./report.ts";
import { verdictText, verifyChecks } from "./verify-checks.ts";

/** The report as Markdown, for the file that `GITHUB_STEP_SUMMARY` names. */
export function stepSummary(report: VerifyReport): string {
	const { model, remote, served, timing } = report;
	const rows = verifyChecks(report).map(
		({ name, passed, detail }) => `| ${name} | ${passed ? "pass" : "**fail**"} | ${cell(detail)} |`,
	);
	const workers = remote.workers.map(
		(worker) =>
			`| \`${worker.key}\` | ${cell(worker.class)} | ${worker.pairs} | ${worker.rttMsP50.toFixed(1)} | ${worker.computeMsP50.toFixed(1)} |`,
	);
	return [
		`### kvasir verify: ${cell(verdictText(report))}`,
		"",
		`Model \`${model.name}\` (${model.weights} weights, ${formatCounted(model.layers, "layer")}, ${model.experts} experts, top-${model.topK}); remote layers: ${remote.layers.join(", ") || "none"}.`,
		"",
		"| check | result | |",
		"|---|---|---|",
		...rows,
		"",
		...(workers.length === 0
			? []
			: [
					"| worker | class | pairs | round trip ms (p50) | compute ms (p50) |",
					"|---|---|---|---|---|",
					...workers,
					"",
				]),
		`Served ${served.pairs} pairs, ${served.bytes} bytes: ${served.kvr} KVR. ${timing.localTokensPerSecond.toFixed(1)} tokens/s local, ${timing.remoteTokensPerSecond.toFixed(1)} remote.`,
		"",
	].join("\n");
}

function cell(text: string): string {
	return text.replaceAll("|", "\\|").replaceAll("\n", " ").replaceAll("<", "&lt;");
}
