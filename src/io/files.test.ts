import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import type { KvasirError } from "../errors.ts";
import { readSmallFile, writePrivateFile } from "./files.ts";

describe("writePrivateFile()", () => {
	it("makes folder and file for the owner alone, and leaves no draft", async () => {
		const folder = join(await temporaryHome(), "new");
		const path = join(folder, "secret");
		await writePrivateFile(path, "one");
		await writePrivateFile(path, "two");
		expect(await readFile(path, "utf8")).toBe("two");
		expect((await stat(path)).mode & 0o777).toBe(0o600);
		expect((await stat(folder)).mode & 0o777).toBe(0o700);
		expect(await readdir(folder)).toEqual(["secret"]);
	});
});

describe("writePrivateFile() where it cannot", () => {
	it("names the file, and leaves no draft", async () => {
		const folder = await temporaryHome();
		await mkdir(join(folder, "there"));
		await expect(writePrivateFile(join(folder, "there"), "x")).rejects.toMatchObject({
			code: "bad_file",
			message: `Cannot write ${join(folder, "there")}: it is a folder, not a file`,
		});
		await writeFile(join(folder, "file"), "x");
		await expect(writePrivateFile(join(folder, "file", "beyond"), "x")).rejects.toMatchObject({
			message: expect.stringContaining(join(folder, "file", "beyond")),
		});
		expect((await readdir(folder)).sort()).toEqual(["file", "there"]);
	});
});

describe("readSmallFile()", () => {
	it("reads up to its bound, and knows a missing file from a bad one", async () => {
		const home = await temporaryHome();
		await writeFile(join(home, "file"), "12345");
		expect(String(await readSmallFile(join(home, "file"), 5))).toBe("12345");
		await expect(readSmallFile(join(home, "file"), 4)).rejects.toMatchObject({ code: "bad_file" });
		expect(await readSmallFile(join(home, "missing"), 4)).toBeNull();
		expect(await readSmallFile(join(home, "file", "beyond"), 4)).toBeNull();
		await expect(readSmallFile(home, 1 << 20)).rejects.toMatchObject({
			code: "bad_file",
			message: `Cannot read ${home}: it is a folder, not a file`,
		});
	});

	it.skipIf(process.platform === "win32")("reads no device, and of a pipe no more than its bound", async () => {
		await expect(readSmallFile("/dev/zero", 4096)).rejects.toMatchObject({ code: "bad_file" });
		const pipe = join(await temporaryHome(), "pipe");
		execFileSync("mkfifo", [pipe]);
		for (const [text, result] of [
			["12345", "12345"],
			["123456", "bad_file"],
		] as const) {
			const read = readSmallFile(pipe, 5).then(String, (error: KvasirError) => error.code);
			await writeFile(pipe, text);
			expect(await read).toBe(result);
		}
	});
});
