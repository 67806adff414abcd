import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { builtUrl } from "./built.ts";
import { lockHome } from "./home-lock.ts";

let home: string;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), "kvasir-lock-"));
});
afterEach(() => rm(home, { recursive: true }));

/** Another process that has the lock until it is killed. */
async function holder() {
	const script = `
		import { lockHome } from ${JSON.stringify(builtUrl(import.meta.url, "./home-lock.js").href)};
		await lockHome(${JSON.stringify(home)}, "hub");
		console.log("held");
		setInterval(() => {}, 1000);`;
	const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
	await once(child.stdout, "data");
	return child;
}

it("is taken by one process for each role, whatever path leads there, and free again when released", async () => {
	const first = await lockHome(home, "hub");
	await expect(lockHome(home, "hub")).rejects.toMatchObject({ code: "home_in_use" });
	await symlink(home, join(home, "itself"));
	await expect(lockHome(join(home, "itself"), "hub")).rejects.toMatchObject({ code: "home_in_use" });
	const other = await lockHome(home, "gateway");
	first.release();
	first.release();
	const second = await lockHome(home, "hub");
	second.release();
	other.release();
});

it("is free again when the process that held it was killed", async () => {
	const child = await holder();
	await expect(lockHome(home, "hub")).rejects.toMatchObject({ code: "home_in_use" });
	child.kill("SIGKILL");
	await once(child, "exit");
	(await lockHome(home, "hub")).release();
});

it("says what is wrong with a home that is not there", async () => {
	await expect(lockHome(join(home, "not there"), "hub")).rejects.toMatchObject({ code: "bad_file" });
});
