import type { VerifyReport } from "./report.ts";
import { verifyChecks } from "./verify-checks.ts";

/** The report as a JUnit XML file: one test case for each thing that verify compares. */
export function junitXml(report: VerifyReport): string {
	const checks = verifyChecks(report);
	const failures = checks.filter(({ passed }) => !passed).length;
	const cases = checks.map(({ name, passed, detail }) => {
		const open = `    <testcase classname="kvasir.verify" name="${escaped(name)}"`;
		if (passed) return `${open}/>`;
		return `${open}>\n      <failure message="${escaped(detail)}"/>\n    </testcase>`;
	});
	return [
		'<?xml version="1.0" encoding="UTF-8"?>',
		`<testsuites tests="${checks.length}" failures="${failures}">`,
		`  <testsuite name="kvasir verify ${escaped(report.model.name)}" tests="${checks.length}" failures="${failures}">`,
		...cases,
		"  </testsuite>",
		"</testsuites>",
		"",
	].join("\n");
}

function escaped(text: string): string {
	return (
		text
			.replaceAll("&", "&amp;")
			.replaceAll("<", "&lt;")
			.replaceAll(">", "&gt;")
			.replaceAll('"', "&quot;")
			// biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 has no way to write them
			.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
			.replaceAll("\n", "&#10;")
	);
}
