import { execFileSync } from "node:child_process";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { cutAfter, sendFrom, startSliceServer } from "../../test/support/slice-server.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import type { KvasirError } from "../errors.ts";
import { systemClock } from "../io/clock.ts";
import { sha256 } from "../io/crypto.ts";
import { openSliceCache } from "./slice-cache.ts";
import type { SliceClient } from "./slice-client.ts";
import { type FetchParts, fetchSlice, fetchText } from "./slice-fetch.ts";

const seed = 20261129;
const slice = seededRandom(seed).bytes(300_000);
const digest = Buffer.from(sha256(slice)).toString("hex");
const wanted = { digest, bytes: slice.length, what: "expert 3 of layer 1" };
/** Waits are as short as they get, so that only the number of tries counts. */
const hasty = {
	...systemClock,
	sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 5), signal),
};

async function parts(client: SliceClient, change: Partial<FetchParts> = {}): Promise<FetchParts & { folder: string }> {
	const folder = join(await temporaryHome(), "slices");
	return {
		client,
		cache: await openSliceCache({ folder, bytesMax: 2 ** 30, clock: systemClock }),
		clock: hasty,
		random: seededRandom(seed),
		signal: new AbortController().signal,
		...change,
		folder,
	};
}

/** An answer that ends after its first bytes, once the client has them: what still waits to be read when a connection is cut is lost. */
function cutOnceThere(bytes: number) {
	let tell = () => {};
	const there = new Promise<void>((resolve) => {
		tell = resolve;
	});
	let had = 0;
	return {
		answer(response: ServerResponse) {
			response.writeHead(200, { "content-length": slice.length });
			response.write(slice.subarray(0, bytes));
			void there.then(() => response.destroy());
		},
		onBytes(more: number) {
			had += more;
			if (had >= bytes) tell();
		},
	};
}

describe("fetchSlice()", () => {
	it("signs in for the model, asks for the backbone's slice, and keeps it under its digest", async () => {
		const { client, requests } = await startSliceServer((response, { from }) => sendFrom(response, slice, from));
		const fetching = await parts(client);
		expect(Buffer.from(await fetchSlice(wanted, fetching)).equals(slice)).toBe(true);
		expect(requests[0]!.url).toMatch(new RegExp(`^/v1/slices/${digest}\\?model=tiny&backbone=`));
		expect(requests[0]!.headers.authorization).toMatch(/^Kvasir1 /);
		expect(await readdir(fetching.folder)).toEqual([digest]);
		await fetchSlice(wanted, fetching);
		expect(requests).toHaveLength(1);
	});

	it("goes on where it was cut, at ten random points", async () => {
		const random = seededRandom(seed);
		const cuts = Array.from({ length: 10 }, () => Math.floor(random.uniform() * slice.length)).sort((a, b) => a - b);
		const { client, ranges } = await startSliceServer((response, { request, from }) => {
			if (request >= cuts.length) return sendFrom(response, slice, from);
			response.writeHead(from === 0 ? 200 : 206, {
				"content-range": `bytes ${from}-${slice.length - 1}/${slice.length}`,
				"content-length": slice.length - from,
			});
			cutAfter(response, slice.subarray(from, Math.max(from, cuts[request]!)));
		});
		const retries: string[] = [];
		const fetching = await parts(client, { onRetry: ({ code }) => retries.push(code) });
		expect(Buffer.from(await fetchSlice(wanted, fetching)).equals(slice)).toBe(true);
		expect(retries.length).toBe(10);
		const starts = ranges.map((range) => Number(/\d+/.exec(range ?? "0")![0]));
		expect(starts).toEqual([...starts].sort((a, b) => a - b));
		expect(starts.at(-1)).toBeGreaterThan(0);
	});

	it("goes on after a restart of the worker with what is on disk", async () => {
		const { client, ranges } = await startSliceServer((response, { from }) => sendFrom(response, slice, from));
		const folder = join(await temporaryHome(), "slices");
		await mkdir(folder);
		await writeFile(join(folder, `${digest}.part`), slice.subarray(0, 123_456));
		const cache = await openSliceCache({ folder, bytesMax: 2 ** 30, clock: systemClock });
		await fetchSlice(wanted, await parts(client, { cache }));
		expect(ranges).toEqual(["bytes=123456-"]);
	});

	it("fetches anew what came with a flipped byte, and gives up naming the expert when that does not end", async () => {
		const flipped = slice.slice();
		flipped[77_777]! ^= 1;
		const once = await startSliceServer((response, { request, from }) => {
			sendFrom(response, request === 0 ? flipped : slice, from);
		});
		await fetchSlice(wanted, await parts(once.client));
		expect(once.ranges).toEqual([null, null]);
		const always = await startSliceServer((response, { from }) => sendFrom(response, flipped, from));
		const fetching = await parts(always.client);
		await expect(fetchSlice(wanted, fetching)).rejects.toMatchObject({
			code: "bad_weights",
			message: expect.stringContaining("expert 3 of layer 1"),
		});
		expect(always.requests).toHaveLength(3);
		expect(await readdir(fetching.folder)).toEqual([]);
	});

	it("begins again at a server without Range", async () => {
		const { answer, onBytes } = cutOnceThere(5000);
		const { client, ranges } = await startSliceServer((response, { request }) => {
			if (request === 0) answer(response);
			else response.writeHead(200, { "content-length": slice.length }).end(slice);
		});
		expect(Buffer.from(await fetchSlice(wanted, await parts(client, { onBytes }))).equals(slice)).toBe(true);
		expect(ranges).toEqual([null, "bytes=5000-"]);
	});

	it.each([
		["another range than asked", { "content-range": "bytes 7-299999/300000" }, 206],
		["that there is no such range", { "content-range": "bytes */300000" }, 416],
	])("begins again when it is told %s", async (_, headers, status) => {
		const { answer, onBytes } = cutOnceThere(5000);
		const { client, ranges } = await startSliceServer((response, { request, from }) => {
			if (request === 0) answer(response);
			else if (from > 0) response.writeHead(status, headers).end("x");
			else sendFrom(response, slice, from);
		});
		expect(Buffer.from(await fetchSlice(wanted, await parts(client, { onBytes }))).equals(slice)).toBe(true);
		expect(ranges).toEqual([null, "bytes=5000-", null]);
	});

	it("does not take more bytes than the manifest says", async () => {
		const { client } = await startSliceServer((response, { request, from }) => {
			if (request > 0) return sendFrom(response, slice, from);
			response.writeHead(200);
			response.write(slice);
			response.end("and more");
		});
		expect(Buffer.from(await fetchSlice(wanted, await parts(client))).equals(slice)).toBe(true);
	});

	it("gives up a connection on which nothing comes, and says so", async () => {
		const { client } = await startSliceServer(
			(response, { request, from }) => {
				if (request > 1) return sendFrom(response, slice, from);
				if (request === 1) {
					response.writeHead(200, { "content-length": slice.length });
					response.write(slice.subarray(0, 1000));
				}
			},
			{ stallMs: 100 },
		);
		const retries: string[] = [];
		await fetchSlice(wanted, await parts(client, { onRetry: ({ code }) => retries.push(code) }));
		expect(retries).toEqual(["timeout", "timeout"]);
	});

	it("waits as long as the gateway asks, and tries again after its restart", async () => {
		const { client } = await startSliceServer((response, { request, from }) => {
			if (request === 0) response.writeHead(429, { "retry-after": "7" }).end();
			else if (request === 1) response.socket!.destroy();
			else sendFrom(response, slice, from);
		});
		const waits: number[] = [];
		await fetchSlice(wanted, await parts(client, { onRetry: (_, inMs) => waits.push(inMs) }));
		expect(waits[0]).toBe(7000);
		expect(waits).toHaveLength(2);
	});

	it.each([
		[404, "", "bad_weights"],
		[401, "signature", "auth"],
		[403, "banned", "not_admitted"],
	] as const)("does not try again after a %d for %s", async (status, reason, code) => {
		const { client, requests } = await startSliceServer(
			(response) => void response.writeHead(status).end(JSON.stringify({ error: { code: reason } })),
		);
		await expect(fetchSlice(wanted, await parts(client))).rejects.toMatchObject({ code });
		expect(requests).toHaveLength(1);
	});

	it("signs in again with the gateway's time when the clock is wrong", async () => {
		const { client, requests } = await startSliceServer((response, { request, from }) => {
			if (request > 0) return sendFrom(response, slice, from);
			response.writeHead(401, { "x-kvasir-time": String(Math.floor(Date.now() / 1000) + 1000) }).end();
		});
		await fetchSlice(wanted, await parts(client));
		const times = requests.map(({ headers }) => Number(headers.authorization!.split(".")[1]));
		expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(999);
	});

	it("stops when it is told to, and keeps what came", async () => {
		const stop = new AbortController();
		const { client } = await startSliceServer((response) => {
			response.writeHead(200, { "content-length": slice.length });
			response.write(slice.subarray(0, 4000));
		});
		const fetching = await parts(client, { signal: stop.signal, onBytes: () => stop.abort(new Error("enough")) });
		await expect(fetchSlice(wanted, fetching)).rejects.toThrow("enough");
		const [name] = await readdir(fetching.folder);
		expect((await stat(join(fetching.folder, name!))).size).toBeGreaterThan(0);
	});

	it("says disk_full on a full disk, and keeps what is complete", async ({ skip }) => {
		const folder = await temporaryHome();
		try {
			execFileSync("mount", ["-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], { stdio: "ignore" });
		} catch {
			skip("a small file system needs root");
		}
		onTestFinished(() => void execFileSync("umount", ["-l", folder]));
		const { client } = await startSliceServer((response, { from, request }) => {
			sendFrom(response, request === 0 ? slice : slice.slice().reverse(), from);
		});
		const cache = await openSliceCache({ folder: join(folder, "slices"), bytesMax: 2 ** 30, clock: systemClock });
		const fetching = await parts(client, { cache });
		await fetchSlice(wanted, fetching);
		const other = Buffer.from(sha256(slice.slice().reverse())).toString("hex");
		const error = await fetchSlice({ ...wanted, digest: other }, fetching).catch((error: KvasirError) => error);
		expect(error).toMatchObject({ code: "disk_full", hint: expect.stringContaining("Free some space") });
		expect(await cache.read(digest)).not.toBeNull();
	});
});

describe("fetchText()", () => {
	it("reads a document over several tries, and refuses a longer one than allowed", async () => {
		const { client } = await startSliceServer((response, { request }) => {
			if (request === 0) response.writeHead(503, { "retry-after": "1" }).end();
			else response.end("manifest");
		});
		expect(await fetchText("/v1/models/tiny/manifest", 100, await parts(client))).toBe("manifest");
		await expect(fetchText("/v1/models/tiny/manifest", 7, await parts(client))).rejects.toMatchObject({
			code: "bounds",
		});
	});
});
