import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bytes } from "../../test/support/sample-messages.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { openWorkerHome } from "./home.ts";

let folder: string;
beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "kvasir-home-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("openWorkerHome()", () => {
	it("keeps instance, epoch and backbone keys between runs", async () => {
		const first = await openWorkerHome(folder, seededRandom(1));
		expect([await first.nextEpoch(), await first.nextEpoch(), await first.nextEpoch(40)]).toEqual([1, 2, 40]);
		await first.rememberBackbone("gate.example", bytes(32));
		const second = await openWorkerHome(folder, seededRandom(2));
		expect(Buffer.from(second.instance)).toEqual(Buffer.from(first.instance));
		expect(await second.nextEpoch()).toBe(41);
		expect(Buffer.from((await second.backboneOf("gate.example"))!)).toEqual(Buffer.from(bytes(32)));
		expect(await second.backboneOf("constructor")).toBeNull();
		expect((await stat(join(folder, "worker.json"))).mode & 0o777).toBe(0o600);
	});

	it("stores an epoch before it hands it out, also when asked many times at once", async () => {
		const home = await openWorkerHome(folder, seededRandom(1));
		const epochs = await Promise.all(Array.from({ length: 10 }, () => home.nextEpoch()));
		expect(new Set(epochs).size).toBe(10);
		expect(JSON.parse(await readFile(join(folder, "worker.json"), "utf8")).epoch).toBe(10);
	});

	it("refuses a file that is not its own", async () => {
		await writeFile(join(folder, "worker.json"), "[]x");
		await expect(openWorkerHome(folder, seededRandom(1))).rejects.toMatchObject({ code: "bad_file" });
	});
});
