import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { runChecks } from "../doctor/check.ts";
import { homeCheck } from "../doctor/machine-checks.ts";
import { createKeyFile } from "../wallet/key-file.ts";
import { openLocalReceipts } from "../wallet/local-receipts.ts";
import { systemClock } from "./clock.ts";
import { makePrivateFolder, writePrivateFile } from "./files.ts";

vi.mock("node:fs/promises", async (original) => {
	const real = await original<typeof import("node:fs/promises")>();
	return { ...real, mkdir: vi.fn(real.mkdir), open: vi.fn(real.open) };
});
const real = await vi.importActual<typeof import("node:fs/promises")>("node:fs/promises");
afterEach(() => {
	vi.mocked(mkdir).mockImplementation(real.mkdir);
	vi.mocked(open).mockImplementation(real.open);
});

/** As Linux does it: what is there is there, below nothing is nothing, and only then the disk refuses. */
function refuseFolders(code: string): void {
	vi.mocked(mkdir).mockImplementation(async (path) => {
		const error = (errno: string) => Object.assign(new Error(errno), { code: errno, syscall: "mkdir", path });
		if (await real.stat(path as string).catch(() => null)) throw error("EEXIST");
		if (!(await real.stat(join(path as string, "..")).catch(() => null))) throw error("ENOENT");
		throw error(code);
	});
}

function refuseFiles(code: string): void {
	vi.mocked(open).mockImplementation(async (path) => {
		throw Object.assign(new Error(`${code}: raw words`), { code, syscall: "open", path });
	});
}

const cases: [errno: string, code: string, words: string, hint: RegExp][] = [
	["EROFS", "bad_file", "the file system is read-only", /--home/],
	["ENOSPC", "disk_full", "the disk is full", /--home/],
	["EDQUOT", "disk_full", "the disk quota is used up", /--home/],
	["EACCES", "bad_file", "permission denied", /who may read and write/],
	["ENOTDIR", "file_missing", "a part of the path is a file, not a folder", /path/],
	["ENOENT", "file_missing", "no such file or folder", /path/],
];

describe.each(cases)("a home where writing ends with %s", (errno, code, words, hint) => {
	const doctor = async (home: string) =>
		(await runChecks([homeCheck(home, "linux")], { clock: systemClock, signal: new AbortController().signal }))[0];

	it("cannot be made, however deep: typed, in words, with what helps", async () => {
		const home = join(await temporaryHome(), "not", "there", "home");
		refuseFolders(errno);
		const message = `Cannot make the folder ${home}: ${words}`;
		const refused = { code, message, hint: expect.stringMatching(hint) };
		await expect(makePrivateFolder(home)).rejects.toMatchObject(refused);
		await expect(createKeyFile(join(home, "node.key"), "x")).rejects.toMatchObject(refused);
		await expect(openLocalReceipts(home)).rejects.toMatchObject(refused);
		const file = join(home, "state.json");
		await expect(writePrivateFile(file, "x")).rejects.toMatchObject({
			code,
			message: `Cannot write ${file}: ${words}`,
			hint: expect.stringMatching(hint),
		});
		expect(await doctor(home)).toMatchObject({
			state: "failed",
			found: message,
			hint: expect.stringMatching(hint),
		});
	});

	it("that is there: the same", async () => {
		const home = await temporaryHome();
		refuseFolders(errno);
		refuseFiles(errno);
		expect(await makePrivateFolder(home)).toBe(home);
		const file = join(home, "state.json");
		await expect(writePrivateFile(file, "x")).rejects.toMatchObject({
			code,
			message: `Cannot write ${file}: ${words}`,
		});
		for (const [name, write] of [
			["node.key", (path: string) => createKeyFile(path, "x")],
			["receipts.jsonl", () => openLocalReceipts(home)],
		] as const) {
			const message = `Cannot write ${join(home, name)}: ${words}`;
			await expect(write(join(home, name))).rejects.toMatchObject({ code, message, hint: expect.stringMatching(hint) });
		}
		const found = await doctor(home);
		expect(found).toMatchObject({ state: "failed", found: `Cannot write in ${home}: ${words}` });
		expect(found?.hint).toMatch(hint);
	});
});
