import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/**
 * Runs an ES module text in a child process and kills it with SIGKILL at its `lines`-th line of output.
 * Returns all lines that it got out. The script loads what was built: pass `builtModule()` URLs as arguments.
 */
export async function runUntilKilled(script: string, args: readonly string[], lines: number): Promise<string[]> {
	const folder = mkdtempSync(join(tmpdir(), "kvasir-child-"));
	const file = join(folder, "child.mjs");
	writeFileSync(file, script);
	const child = spawn(process.execPath, [file, ...args], { stdio: ["ignore", "pipe", "inherit"] });
	const told: string[] = [];
	for await (const line of createInterface({ input: child.stdout })) {
		told.push(line);
		if (told.length === lines) child.kill("SIGKILL");
	}
	if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
	rmSync(folder, { recursive: true });
	if (child.signalCode !== "SIGKILL")
		throw new Error(`the child ended by itself after ${told.length} lines (exit ${child.exitCode})`);
	return told;
}

/** The URL of a built module, such as `src/ledger/journal.js`. */
export function builtModule(path: string): string {
	return new URL(`../../dist/${path}`, import.meta.url).href;
}
