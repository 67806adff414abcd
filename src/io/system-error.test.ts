import { mkdir, open, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { systemError } from "./system-error.ts";

it("turns what the system refuses into typed errors with words, never an errno alone", async () => {
	const home = await temporaryHome();
	await symlink(join(home, "loop"), join(home, "loop"));
	await mkdir(join(home, "folder"));
	await writeFile(join(home, "file"), "");
	const cases: [path: string, flags: string, code: string, words: RegExp][] = [
		["missing", "r", "file_missing", /no such file/],
		["file/beyond", "r", "file_missing", /not a folder/],
		["folder", "w", "bad_file", /it is a folder/],
		["loop", "r", "bad_file", /circle/],
		["x".repeat(300), "r", "bad_file", /too long/],
		["file", "wx", "bad_file", /there already/],
	];
	for (const [path, flags, code, words] of cases) {
		const thrown = await open(join(home, path), flags).catch((error: unknown) => error);
		expect(systemError(thrown), path).toMatchObject({ code, message: expect.stringMatching(words) });
	}
	const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" });
	expect(systemError(full, "keep receipts")).toMatchObject({
		code: "disk_full",
		message: "Cannot keep receipts: the disk is full",
	});
	expect(systemError(new TypeError("x is not a function"))).toBeNull();
});
