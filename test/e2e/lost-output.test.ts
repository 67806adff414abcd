import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { expect, it } from "vitest";
import { cleanEnv, cliPath, resultOf, startCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";

it.skipIf(process.platform !== "linux")("output that a full disk swallowed is a failure", async () => {
	const full = openSync("/dev/full", "w");
	const { status, stderr } = spawnSync(
		process.execPath,
		[cliPath, "model", "list", "--json", "--home", await temporaryHome()],
		{
			env: cleanEnv() as NodeJS.ProcessEnv,
			stdio: ["ignore", full, "pipe"],
		},
	);
	closeSync(full);
	expect({ status, said: String(stderr) }).toEqual({ status: 1, said: expect.stringContaining("[disk_full]") });
});

it("output that nobody wants any more is none", async () => {
	const args = ["model", "list", "--json", "--home", await temporaryHome()];
	const child = startCli(args);
	child.stdout.destroy();
	expect(await resultOf(child, args, 30_000)).toMatchObject({ code: 0, stderr: "" });
});
