import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { processesNaming } from "../support/leaks.ts";
import { resultOf, startCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { until } from "../support/until.ts";

/** Ends well before a demo of so many tokens does. */
const endMs = 12_000;

describe("a command that started others, told to end", () => {
	it.each([
		[1, ["SIGINT"], 130],
		[5, ["SIGTERM"], 143],
		[3, ["SIGHUP"], 129],
		[1, ["SIGTERM", "SIGTERM"], 143],
		[4, ["SIGINT", "SIGINT"], 130],
	] as const)(
		"with %i processes running, by %j: ends soon with %s, leaving no process and no file",
		async (running, signals, code) => {
			const folder = await temporaryHome();
			const args = ["demo", "--tokens", "1024", "--json"];
			const child = startCli(args, { env: { TMPDIR: folder } });
			const result = resultOf(child, args, 60_000);
			await until(async () => (await processesNaming(folder)).length >= running, `${running} processes`, 60_000);
			const started = Date.now();
			for (const signal of signals) child.kill(signal);
			expect(await result).toMatchObject({ code, stdout: "" });
			expect(Date.now() - started).toBeLessThan(endMs);
			await until(async () => (await processesNaming(folder)).length === 0, "the children to end");
			expect(await readdir(folder)).toEqual([]);
		},
	);

	it.each([
		["serve-hub", ["--relay", "127.0.0.1:0", "--api", "127.0.0.1:0"]],
		["join", ["ws://127.0.0.1:1", "--model", "tiny"]],
	])("%s outlives SIGHUP", async (command, options) => {
		const args = [command, ...options, "--json", "--home", await temporaryHome()];
		const child = startCli(args);
		let said = "";
		child.stdout.on("data", (text) => {
			said += text;
		});
		const result = resultOf(child, args, 60_000);
		await until(async () => said.includes("listening"), "it to listen");
		child.kill("SIGHUP");
		// Signals are delivered in order of number where both wait, so the next one waits for a turn.
		await new Promise((resolve) => setTimeout(resolve, 200));
		child.kill("SIGTERM");
		expect((await result).code).toBe(143);
	});
});
