import Table from "cli-table3";

/** Rows as a table for a terminal or a pipe: no borders but a line under the head, numbers right-aligned. */
export function formatTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
	const numeric = head.map((_, column) => rows.length > 0 && rows.every((row) => isNumeric(row[column])));
	const table = new Table({
		head: [...head],
		colAligns: numeric.map((is) => (is ? "right" : "left")),
		style: { head: [], border: [], "padding-left": 0, "padding-right": 2 },
		chars: {
			...{ top: "", "top-mid": "", "top-left": "", "top-right": "", bottom: "", "bottom-mid": "", "bottom-left": "" },
			...{
				"bottom-right": "",
				left: "",
				"left-mid": "",
				mid: "",
				"mid-mid": "",
				right: "",
				"right-mid": "",
				middle: "",
			},
		},
	});
	table.push(...rows.map((row) => row.map(String)));
	return table
		.toString()
		.split("\n")
		.map((line) => line.trimEnd())
		.join("\n");
}

function isNumeric(cell: string | number | undefined): boolean {
	return typeof cell === "number" || /^[\d.,]+( ?(%|ms|us|s|B|[KMGT]iB|GB\/s))?$/.test(cell ?? "");
}

/** Label and value under each other, the values in one column. */
export function formatFacts(facts: readonly (readonly [label: string, value: string | number])[]): string {
	const width = Math.max(...facts.map(([label]) => label.length));
	return facts.map(([label, value]) => `${label.padEnd(width)}  ${value}`).join("\n");
}
