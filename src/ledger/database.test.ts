import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { openDatabase } from "./database.ts";

vi.mock("node:fs/promises", async (original) => {
	const real = await original<typeof import("node:fs/promises")>();
	return { ...real, writeFile: vi.fn(real.writeFile) };
});
beforeEach(() => void vi.mocked(writeFile).mockReset());

it.each([
	["EROFS", "ledger", "the file system is read-only", /--home/],
	["ENOSPC", "disk_full", "the disk is full", /--home/],
	["EDQUOT", "disk_full", "the disk quota is used up", /--home/],
	["EACCES", "ledger", "permission denied", /who may read and write/],
	["ENOENT", "ledger", "no such file or folder", /path/],
	["ENOTDIR", "ledger", "a part of the path is a file, not a folder", /path/],
])("a store that SQLite cannot open says why where the system refuses with %s", async (errno, code, words, hint) => {
	// SQLite opens no folder, and says no more than that.
	const path = join(await temporaryHome(), "hub.db");
	await mkdir(path);
	vi.mocked(writeFile).mockRejectedValue(Object.assign(new Error(errno), { code: errno, syscall: "open" }));
	await expect(openDatabase(path)).rejects.toMatchObject({
		code,
		message: `Cannot open the ledger at ${path}: ${words}`,
		hint: expect.stringMatching(hint),
	});
});

it("a store that SQLite cannot open for its own reasons keeps its words", async () => {
	const path = join(await temporaryHome(), "hub.db");
	await mkdir(path);
	await expect(openDatabase(path)).rejects.toMatchObject({
		code: "ledger",
		message: expect.stringMatching(/unable to open/i),
		hint: expect.stringContaining("KVASIR_HUB_DB"),
	});
});
