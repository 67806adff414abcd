import { appendFile, writeFile } from "node:fs/promises";
import type { VerifyReport } from "../verify/report.ts";
import { toJson } from "./output.ts";

/** Writes what CI systems read: JUnit XML, and GitHub's step summary. */
export async function writeReports(
	report: VerifyReport,
	files: { readonly junit: string | undefined; readonly stepSummary: string | undefined },
): Promise<void> {
	if (files.junit) await writeFile(files.junit, junitOf(report));
	if (files.stepSummary) await appendFile(files.stepSummary, summaryOf(report));
}

/** One test case; it fails unless the verdict is identical or equivalent. */
export function junitOf(report: VerifyReport): string {
	const { model, verdict, firstDivergence } = report;
	const passed = verdict === "identical" || verdict === "equivalent";
	const failure = passed
		? ""
		: `<failure message="${escapeXml(verdict)}">${escapeXml(toJson(firstDivergence))}</failure>`;
	return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="${passed ? 0 : 1}">
	<testsuite name="kvasir verify" tests="1" failures="${passed ? 0 : 1}">
		<testcase classname="kvasir.verify" name="${escapeXml(model.name)}">${failure}<system-out>${escapeXml(toJson(report))}</system-out></testcase>
	</testsuite>
</testsuites>
`;
}

function summaryOf({ model, tokens, logits, remote, verdict }: VerifyReport): string {
	return `### kvasir verify: ${verdict}

| model | tokens the same | logits | pairs remote | computed here |
|---|---|---|---|---|
| ${model.name} | ${tokens.same} of ${tokens.total} | ${logits.identical ? "identical" : `cosine ${logits.cosineMin}`} | ${remote.answered} of ${remote.asked} | ${remote.fallback} |
`;
}

function escapeXml(text: string): string {
	const names: Record<string, string> = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };
	// XML 1.0 has no way to write most control characters.
	return text.replace(/[<>&"]/g, (char) => names[char]!).replace(/[^\t\n\r\u0020-\uFFFD]/g, "?");
}
