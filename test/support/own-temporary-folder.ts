import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { processesNaming } from "./leaks.ts";
import { until } from "./until.ts";

// A setup file: each test file, and every process it starts, has a folder for temporary files of its own. When the file is over,
// the folder must be empty and no process may work in it. A killed process may take a moment to end.

const folder = mkdtempSync(join(tmpdir(), "kvasir-test-"));
process.env.TMPDIR = folder;

afterAll(async () => {
	const left = async () => [...readdirSync(folder), ...(await processesNaming(folder))];
	await until(async () => (await left()).length === 0, "the processes to end").catch(() => {});
	const found = await left();
	rmSync(folder, { recursive: true, force: true });
	expect(found).toEqual([]);
});
