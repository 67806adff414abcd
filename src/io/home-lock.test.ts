import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { lockHome } from "./home-lock.ts";

let home: string;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), "kvasir-lock-"));
});
afterEach(() => rm(home, { recursive: true }));

/** Another process that has the lock until it is killed. */
async function holder() {
	const script = `
		import Libsql from "libsql";
		const file = new Libsql(${JSON.stringify(join(home, "hub.lock"))});
		file.exec("BEGIN IMMEDIATE");
		console.log("held");
		setInterval(() => file.inTransaction, 1000);`;
	const child = spawn(process.execPath, ["--input-type=module", "-e", script], { cwd: process.cwd() });
	await once(child.stdout, "data");
	return child;
}

it("is taken by one process for each role, and free again when released", async () => {
	const first = await lockHome(home, "hub");
	await expect(lockHome(home, "hub")).rejects.toMatchObject({ code: "home_in_use" });
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

it("says what is wrong with a lock that cannot be opened", async () => {
	await writeFile(join(home, "hub.lock"), "this is no database, and was never one".repeat(30));
	await expect(lockHome(home, "hub")).rejects.toMatchObject({ code: "bad_file" });
	await expect(lockHome(join(home, "not there"), "hub")).rejects.toMatchObject({ code: "bad_file" });
});
