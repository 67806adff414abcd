import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { exitCodes } from "../../src/errors.ts";
import { packagePath } from "../../src/io/built.ts";

it("docs/errors.md lists every code with its exit code, and no other", async () => {
	const source = await readFile(packagePath("docs/errors.md"), "utf8");
	const rows = [...source.matchAll(/^\| `([a-z_]+)` \| (\d+) \|/gm)].map(([, code, exit]) => [code, Number(exit)]);
	expect(Object.fromEntries(rows)).toEqual(exitCodes);
	expect(rows).toHaveLength(Object.keys(exitCodes).length);
});
