import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { catalog } from "../../src/commands/catalog.ts";
import { flagName } from "../../src/commands/program/options.ts";
import { globalOptions } from "../../src/commands/program/settings.ts";
import { packagePath } from "../../src/io/built.ts";

const readme = await readFile(packagePath("README.md"), "utf8");

/** Every command line the README shows: in code blocks after a prompt, and between backquotes. */
const shown = [...readme.matchAll(/(?:npx )?kvasir ((?:[a-z][a-z-]*)(?: [^\n`)]*)?)/g)].map(([, words]) => words!);

describe("README.md", () => {
	it("shows only commands and options that exist", async () => {
		expect(shown.length).toBeGreaterThan(15);
		for (const line of shown) {
			const words = line.split(/\s+/);
			const entry = catalog.find(({ path }) => path === words.slice(0, path.split(" ").length).join(" "));
			expect(`kvasir ${line}: ${entry?.path ?? "no such command"}`).not.toContain("no such command");
			const spec = await entry!.load();
			const known = Object.values({ ...spec.options, ...globalOptions }).map((option) => `--${flagName(option)}`);
			for (const option of words.filter((word) => word.startsWith("--"))) expect(known).toContain(option);
		}
	});

	it("names every command", () => {
		for (const { path } of catalog) expect(readme).toContain(`kvasir ${path}`);
	});

	it("opens with one line that runs the main job and one that passes the tests", () => {
		const blocks = [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!.trim());
		expect(blocks.slice(0, 2)).toEqual(["npm ci && npx kvasir demo", "npm ci && npm test"]);
	});

	it("links only to documents that are there", async () => {
		for (const [, path] of readme.matchAll(/\]\(([^)#]+\.md)\)/g)) await readFile(packagePath(path!));
	});
});
