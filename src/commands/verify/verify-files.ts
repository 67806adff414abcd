import { access, appendFile, open, rm, writeFile } from "node:fs/promises";
import { systemError } from "../../io/system-error.ts";
import { junitXml } from "../../verify/junit.ts";
import type { VerifyReport } from "../../verify/report.ts";
import { stepSummary } from "../../verify/step-summary.ts";

/** Finds out before a long run whether its result can be written there; the file's contents stay. Throws `bad_file`, `disk_full`. */
export async function checkWritable(path: string): Promise<void> {
	try {
		const isNew = await access(path).then(
			() => false,
			() => true,
		);
		await (await open(path, isNew ? "wx" : "a")).close();
		// An empty file would be taken for a result.
		if (isNew) await rm(path);
	} catch (cause) {
		throw systemError(cause, `write ${path}`) ?? cause;
	}
}

/** Writes what CI systems read: JUnit XML, and GitHub's step summary. */
export async function writeReports(
	report: VerifyReport,
	files: { readonly junit: string | undefined; readonly stepSummary: string | undefined },
): Promise<void> {
	if (files.junit) await writeFile(files.junit, junitXml(report));
	if (files.stepSummary) await appendFile(files.stepSummary, stepSummary(report));
}
