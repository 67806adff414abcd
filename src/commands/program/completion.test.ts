import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { memoryHost } from "../../../test/support/memory-host.ts";
import { runProgram } from "./program.ts";

async function script(shell: string): Promise<string> {
	const host = memoryHost(["completion", shell]);
	expect(await runProgram(host)).toBe(0);
	return host.out();
}

/** What bash would offer behind these words. */
async function completed(words: readonly string[]): Promise<string[]> {
	const asked = `${await script("bash")}
COMP_WORDS=(kvasir ${words.map((word) => JSON.stringify(word)).join(" ")})
COMP_CWORD=${words.length}
_kvasir
printf '%s\\n' "\${COMPREPLY[@]}"`;
	const { stdout, status } = spawnSync("bash", ["--norc", "-c", asked], { encoding: "utf8" });
	expect(status).toBe(0);
	return stdout.split("\n").filter(Boolean);
}

describe("kvasir completion bash", () => {
	it("offers commands, commands of commands, and options", async () => {
		expect(await completed([""])).toEqual(expect.arrayContaining(["demo", "wallet", "verify"]));
		expect(await completed(["wallet", "ba"])).toEqual(["balance"]);
		expect(await completed(["gateway", "invite", ""])).toEqual(expect.arrayContaining(["create", "list", "revoke"]));
		expect(await completed(["--json", "demo", "--to"])).toEqual(["--tokens"]);
	});
});

it.each(["zsh", "fish", "powershell"])("kvasir completion %s names every command", async (shell) => {
	const text = await script(shell);
	for (const word of ["demo", "balance", "inspect", "--tokens"]) expect(text).toContain(word);
});
