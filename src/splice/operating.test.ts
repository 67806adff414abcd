import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { packagePath } from "../io/built.ts";
import { closeCodes } from "../protocol/messages.ts";
import { spliceLimits } from "./limits.ts";
import { refusalReasons } from "./refusals.ts";

const operating = await readFile(packagePath("docs/operating.md"), "utf8");
const rows = operating.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));

it("docs/operating.md lists every refusal with its status, and no other", () => {
	const listed = rows
		.filter(([, status]) => /^\d{3}$/.test(status ?? ""))
		.map(([, status, reason]) => [reason, Number(status)]);
	expect(listed).toEqual(Object.entries(refusalReasons).map(([reason, status]) => [`\`${reason}\``, status]));
});

it("docs/operating.md lists every bound with its value, and no other", () => {
	const from = rows.findIndex(([, bound]) => bound === "bound");
	const listed = rows
		.slice(from + 2)
		.filter(([, bound]) => /^`\w+`$/.test(bound ?? ""))
		.map(([, bound, value]) => [bound, Number(value)]);
	expect(listed).toEqual(Object.entries(spliceLimits).map(([bound, value]) => [`\`${bound}\``, value]));
});

it("docs/operating.md lists every close code, and no other", () => {
	const from = rows.findIndex(([, code]) => code === "code");
	const listed = rows.slice(from + 2).flatMap(([, code]) => (/^\d{4}$/.test(code ?? "") ? [Number(code)] : []));
	expect(listed).toEqual(Object.values(closeCodes).sort((a, b) => a - b));
});
