import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type TensorToWrite, writeGguf } from "../../test/support/gguf-writer.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { KvasirError } from "../errors.ts";
import { packagePath } from "../io/built.ts";
import { openGguf } from "./gguf.ts";
import { ggufLimits } from "./gguf-limits.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
let fixture: Buffer;
let dataOffset: number;
beforeAll(async () => {
	fixture = await readFile(tiny);
	const gguf = await openGguf(tiny);
	dataOffset = Math.min(...[...gguf.tensors.values()].map((tensor) => tensor.offset));
	await gguf.close();
});

/** The error that opening a file of these bytes ends with. */
async function refusal(bytes: Uint8Array): Promise<KvasirError> {
	const path = join(await temporaryHome(), "model.gguf");
	await writeFile(path, bytes);
	const outcome = await openGguf(path).then(
		async (gguf) => {
			await gguf.close();
			return "opened";
		},
		(error) => error,
	);
	expect(outcome).toBeInstanceOf(KvasirError);
	return outcome;
}

const ramp = (count: number) => Uint8Array.from({ length: 4 * count }, (_, i) => i);
const tensor = (name: string, count: number): TensorToWrite => ({ name, type: "F32", ne: [count], bytes: ramp(count) });
const metadata = new Map<string, unknown>([["general.architecture", "test"]]);

describe("openGguf() reads", () => {
	test("every value type, versions 2 and 3, and other alignments", async () => {
		const path = join(await temporaryHome(), "model.gguf");
		const values = new Map<string, unknown>([
			["text", "ä"],
			["yes", true],
			["whole", 7],
			["negative", { type: "i32", value: -7 }],
			["large", { type: "u64", value: 2 ** 40 }],
			["half", 0.5],
			["list", ["a", "b"]],
		]);
		for (const [version, alignment] of [
			[2, 32],
			[3, 64],
			[3, 4096],
		] as const) {
			await writeGguf(path, values, [tensor("a", 3), tensor("b", 5)], { version, alignment });
			const gguf = await openGguf(path);
			expect(gguf.metadata.get("text")).toBe("ä");
			expect(gguf.metadata.get("negative")).toBe(-7);
			expect(gguf.metadata.get("large")).toBe(2 ** 40);
			expect(gguf.metadata.get("list")).toEqual(["a", "b"]);
			const b = gguf.tensors.get("b")!;
			expect(b.offset % alignment).toBe(0);
			expect(await gguf.read(b, 4, 8)).toEqual(ramp(5).subarray(4, 12));
			await expect(gguf.read(b, 4, 20))
				.rejects.toMatchObject({ code: "bad_gguf" })
				.catch(() => undefined);
			await gguf.close();
		}
	});

	test("a header longer than the first window", async () => {
		const path = join(await temporaryHome(), "model.gguf");
		const words = Array.from({ length: 100_000 }, (_, i) => `word ${i}`);
		await writeGguf(path, new Map([...metadata, ["words", words]]), [tensor("a", 3)]);
		const gguf = await openGguf(path);
		expect(gguf.metadata.get("words")).toEqual(words);
		expect(await gguf.read(gguf.tensors.get("a")!, 0, 12)).toEqual(ramp(3));
		await gguf.close();
	});

	test("types it cannot run, as entries without a known size", async () => {
		const path = join(await temporaryHome(), "model.gguf");
		await writeGguf(path, metadata, [{ name: "new", type: 77, ne: [32], bytes: new Uint8Array(32) }]);
		const gguf = await openGguf(path);
		expect(gguf.tensors.get("new")).toMatchObject({ ggmlType: 77, bytes: 0 });
		await gguf.close();
	});
});

describe("openGguf() joins split files", () => {
	const tensors = [tensor("a", 3), tensor("b", 5), tensor("c", 7)];

	test("from any part, the first one empty", async () => {
		const parts = await writeGguf(join(await temporaryHome(), "model.gguf"), metadata, tensors, { splits: [0, 2, 1] });
		const ids = new Set<string>();
		for (const part of parts) {
			const gguf = await openGguf(part);
			ids.add(Buffer.from(gguf.modelId).toString("hex"));
			expect(gguf.metadata.get("general.architecture")).toBe("test");
			expect([...gguf.tensors.keys()]).toEqual(["a", "b", "c"]);
			expect(await gguf.read(gguf.tensors.get("c")!, 0, 28)).toEqual(ramp(7));
			expect(gguf.shards).toHaveLength(3);
			await gguf.close();
		}
		expect(ids.size).toBe(1);
	});

	test("and refuses missing, foreign and renamed parts", async () => {
		const home = await temporaryHome();
		const parts = await writeGguf(join(home, "model.gguf"), metadata, tensors, { splits: [0, 2, 1] });
		const renamed = join(home, "renamed.gguf");
		await writeFile(renamed, await readFile(parts[1]!));
		await expect(openGguf(renamed)).rejects.toMatchObject({ code: "bad_gguf" });
		const third = await readFile(parts[2]!);
		await writeFile(parts[2]!, await readFile(parts[1]!));
		await expect(openGguf(parts[0]!)).rejects.toMatchObject({
			code: "bad_gguf",
			message: expect.stringContaining("expected part 2 of 3, found part 1 of 3"),
		});
		await writeGguf(join(home, "few.gguf"), metadata, [tensor("a", 3)], { splits: [0, 0, 1] });
		await writeFile(parts[2]!, await readFile(join(home, "few-00003-of-00003.gguf")));
		await expect(openGguf(parts[0]!)).rejects.toMatchObject({ code: "bad_gguf" });
		await writeFile(parts[2]!, third);
		await (await openGguf(parts[0]!)).close();
		await rm(parts[1]!);
		await expect(openGguf(parts[0]!)).rejects.toMatchObject({ code: "file_missing" });
	});
});

describe("openGguf() refuses, naming the byte and what was expected there,", () => {
	test("a missing file, a directory, a pipe, an empty file, a picture", async () => {
		const home = await temporaryHome();
		await expect(openGguf(join(home, "nothing.gguf"))).rejects.toMatchObject({ code: "file_missing" });
		await mkdir(join(home, "folder.gguf"));
		await expect(openGguf(join(home, "folder.gguf"))).rejects.toMatchObject({
			code: "bad_gguf",
			message: expect.stringContaining("found a directory"),
		});
		if (process.platform !== "win32") {
			const pipe = join(home, "pipe.gguf");
			execFileSync("mkfifo", [pipe]);
			await expect(openGguf(pipe)).rejects.toMatchObject({ code: "bad_gguf" });
		}
		expect((await refusal(new Uint8Array())).message).toMatch(/at byte 0 expected the letters GGUF .*end of the file/);
		const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
		expect((await refusal(png)).message).toMatch(/at byte 0 expected the letters GGUF: this is not a GGUF file/);
	});

	test("other versions and byte orders", async () => {
		const patched = (offset: number, bytes: number[]) => {
			const copy = Buffer.from(fixture.subarray(0, dataOffset));
			copy.set(bytes, offset);
			return copy;
		};
		expect((await refusal(patched(4, [1, 0, 0, 0]))).message).toContain(
			"at byte 4 expected GGUF version 2 or 3, found 1",
		);
		expect((await refusal(patched(4, [0, 0, 0, 3]))).message).toContain("big-endian");
		const many = await refusal(patched(8, [255, 255, 255, 255, 255, 255, 255, 255]));
		expect(many.message).toContain(`at byte 8 expected a number of tensors of at most ${ggufLimits.tensors}`);
	});

	test("a file cut at any place", async () => {
		const cuts = Array.from({ length: 20 }, (_, i) => Math.floor((i * (dataOffset + 4096)) / 20));
		for (const cut of [...cuts, fixture.length - 33]) {
			const error = await refusal(fixture.subarray(0, cut));
			expect(error.code).toBe("bad_gguf");
			expect(error.message).toMatch(/at byte \d+ expected .*end of the file/);
		}
	}, 30_000);

	test("tensors that repeat, overlap, are misaligned or do not fit their blocks", async () => {
		const path = join(await temporaryHome(), "model.gguf");
		const write = async (tensors: TensorToWrite[], patch?: (bytes: Buffer) => void) => {
			await writeGguf(path, metadata, tensors);
			const bytes = await readFile(path);
			patch?.(bytes);
			return refusal(bytes);
		};
		const offsetOf = (bytes: Buffer, name: string) => bytes.indexOf(name) + name.length + 4 + 8 + 4;
		expect((await write([tensor("same", 3), tensor("same", 3)])).message).toContain('found "same" again');
		const overlap = await write([tensor("first", 9), tensor("other", 9)], (bytes) => {
			bytes.writeBigUInt64LE(0n, offsetOf(bytes, "other"));
		});
		expect(overlap.message).toContain('found "other" begun inside it');
		const crooked = await write([tensor("first", 9), tensor("other", 3)], (bytes) => {
			bytes.writeBigUInt64LE(65n, offsetOf(bytes, "other"));
		});
		expect(crooked.message).toContain("aligned to 32, found 65");
		const blocks = await write([{ name: "q", type: "Q4_K", ne: [255], bytes: new Uint8Array(144) }]);
		expect(blocks.message).toContain("in blocks of 256 (Q4_K), found 255");
	});

	test("a file that was cut after it was opened", async () => {
		const path = join(await temporaryHome(), "model.gguf");
		await writeGguf(path, metadata, [tensor("a", 100)]);
		const gguf = await openGguf(path);
		const { offset } = gguf.tensors.get("a")!;
		await truncate(path, offset + 10);
		await expect(gguf.read(gguf.tensors.get("a")!, 0, 400)).rejects.toMatchObject({
			code: "bad_gguf",
			facts: { offset: offset + 10 },
		});
		await gguf.close();
	});
});

test("openGguf() leaves no file open when it refuses", async () => {
	const openFiles = async () => (await readdir("/proc/self/fd").catch(() => [])).length;
	const home = await temporaryHome();
	const path = join(home, "model.gguf");
	await writeFile(path, fixture.subarray(0, 1000));
	await openGguf(path).catch(() => undefined);
	const before = await openFiles();
	for (let i = 0; i < 20; i++) await openGguf(path).catch(() => undefined);
	expect(await openFiles()).toBeLessThanOrEqual(before + 2);
});
