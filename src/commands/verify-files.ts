import { appendFile, writeFile } from "node:fs/promises";
import { junitXml } from "../verify/junit.ts";
import type { VerifyReport } from "../verify/report.ts";
import { stepSummary } from "../verify/step-summary.ts";

/** Writes what CI systems read: JUnit XML, and GitHub's step summary. */
export async function writeReports(
	report: VerifyReport,
	files: { readonly junit: string | undefined; readonly stepSummary: string | undefined },
): Promise<void> {
	if (files.junit) await writeFile(files.junit, junitXml(report));
	if (files.stepSummary) await appendFile(files.stepSummary, stepSummary(report));
}
