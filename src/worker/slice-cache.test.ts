import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { sha256 } from "../io/crypto.ts";
import { openSliceCache, type SliceCache } from "./slice-cache.ts";

const hex = (bytes: Uint8Array) => Buffer.from(sha256(bytes)).toString("hex");
const sliceOf = (value: number) => new Uint8Array(100).fill(value);

async function put(cache: SliceCache, bytes: Uint8Array): Promise<Uint8Array | null> {
	const slice = await cache.resume(hex(bytes), bytes.length);
	await slice.append(bytes);
	const kept = await slice.finish();
	await slice.close();
	return kept;
}

describe("openSliceCache()", () => {
	it("forgets what was used longest ago when there are too many bytes, also over a restart", async () => {
		const folder = await temporaryHome();
		const clock = fakeClock();
		const cache = await openSliceCache({ folder, bytesMax: 300, clock });
		for (const value of [1, 2, 3]) {
			await put(cache, sliceOf(value));
			await clock.advance(1000);
		}
		expect(Buffer.from(sliceOf(1)).equals((await cache.read(hex(sliceOf(1))))!)).toBe(true);
		await clock.advance(1000);
		await put(cache, sliceOf(4));
		expect(await cache.read(hex(sliceOf(2)))).toBeNull();
		expect(cache.bytes).toBe(300);
		for (const value of [1, 3]) expect(await cache.read(hex(sliceOf(value)))).not.toBeNull();
		const again = await openSliceCache({ folder, bytesMax: 100, clock });
		expect(again.bytes).toBe(300);
		await put(again, sliceOf(5));
		expect(await readdir(folder)).toEqual([hex(sliceOf(5))]);
	});

	it("never gives out bytes that do not fit their name, and deletes them", async () => {
		const folder = join(await temporaryHome(), "slices");
		await mkdir(folder);
		await writeFile(join(folder, hex(sliceOf(1))), sliceOf(2));
		await writeFile(join(folder, "notes.txt"), "not ours");
		const cache = await openSliceCache({ folder, bytesMax: 1000, clock: fakeClock() });
		expect(await cache.read(hex(sliceOf(1)))).toBeNull();
		expect(await readdir(folder)).toEqual(["notes.txt"]);
		const slice = await cache.resume(hex(sliceOf(1)), 100);
		await slice.append(sliceOf(3));
		expect(await slice.finish()).toBeNull();
		await slice.close();
		expect([await readdir(folder), cache.bytes]).toEqual([["notes.txt"], 0]);
	});

	it("begins anew when its folder is deleted meanwhile, and says what else keeps it from writing", async () => {
		const folder = join(await temporaryHome(), "slices");
		const cache = await openSliceCache({ folder, bytesMax: 1000, clock: fakeClock() });
		await put(cache, sliceOf(1));
		const begun = await cache.resume(hex(sliceOf(2)), 100);
		await rm(folder, { recursive: true });
		await begun.append(sliceOf(2));
		expect(await begun.finish()).toBeNull();
		await begun.close();
		expect(await cache.read(hex(sliceOf(1)))).toBeNull();
		expect(await put(cache, sliceOf(2))).not.toBeNull();
		expect(await cache.read(hex(sliceOf(2)))).not.toBeNull();
		await rm(folder, { recursive: true });
		await writeFile(folder, "no folder any more");
		await expect(put(cache, sliceOf(3))).rejects.toMatchObject({ code: "file_missing" });
	});

	it("keeps an unfinished slice while others are forgotten", async () => {
		const folder = await temporaryHome();
		const cache = await openSliceCache({ folder, bytesMax: 200, clock: fakeClock() });
		const begun = await cache.resume(hex(sliceOf(1)), 100);
		await begun.append(sliceOf(1).subarray(0, 60));
		await put(cache, sliceOf(2));
		await put(cache, sliceOf(3));
		expect(begun.bytes).toBe(60);
		await begun.append(sliceOf(1).subarray(60));
		expect(Buffer.from(sliceOf(1)).equals((await begun.finish())!)).toBe(true);
		await begun.close();
	});
});
