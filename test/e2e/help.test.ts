import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { cleanEnv, cliPath } from "../support/run-cli.ts";

const runs = 8;
const helpMsMost = 200;
/** What Kvasir may add to the start of Node itself, where the machine is so busy that Node alone takes long. */
const addedMsMost = 80;

it("kvasir --help answers in under 200 ms", () => {
	// The least of several runs: what the program needs, not what else this machine was doing.
	const bareMs = leastMs(["-e", "0"]);
	const helpMs = leastMs([cliPath, "--help"]);
	expect(helpMs).toBeLessThan(Math.max(helpMsMost, bareMs + addedMsMost));
});

function leastMs(args: readonly string[]): number {
	const times = Array.from({ length: runs }, () => {
		const start = performance.now();
		expect(spawnSync(process.execPath, args, { env: cleanEnv() as NodeJS.ProcessEnv }).status).toBe(0);
		return performance.now() - start;
	});
	return Math.min(...times);
}
