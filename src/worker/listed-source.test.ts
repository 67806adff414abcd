import { describe, expect, it } from "vitest";
import { plainModel } from "../../test/support/plain-engine.ts";
import { bytes } from "../../test/support/sample-messages.ts";
import { buildManifest } from "../backbone/slices/manifest.ts";
import { systemClock } from "../io/clock.ts";
import { silentLog } from "../io/log.ts";
import { type Manifest, manifestDigest, manifestText, type SignedManifest } from "../protocol/manifest.ts";
import { fileSource, type SliceSource } from "./expert-source.ts";
import { ListedSource, type ListedSourceParts } from "./listed-source.ts";
import type { WorkerEvent } from "./worker-event.ts";

const dims = { layers: 2, experts: 4, hidden: 16, width: 4 };
const model = plainModel(dims, bytes(32, 2));
const manifest = await buildManifest({ ...model, name: "tiny", shape: { ...dims, expertWidth: dims.width } as never });
/** The same, but for one expert. */
const changed: Manifest = {
	...manifest,
	layers: manifest.layers.map((layer, index) =>
		index === 1 ? { ...layer, slices: layer.slices.with(2, "ab".repeat(32)) } : layer,
	),
};
const signed = (one: Manifest): SignedManifest => ({
	manifest: one,
	digest: manifestDigest(manifestText(one)),
	key: bytes(32),
});
const digestOf = (one: Manifest) => signed(one).digest;
const live = new AbortController().signal;

/** A source whose gateway gives these manifests, one after the other; the last one stays. */
function startScene(given: readonly Manifest[], own: ListedSourceParts["own"] = null, change = {}) {
	const events: WorkerEvent[] = [];
	const replaced: (readonly [SliceSource | null, SliceSource])[] = [];
	let fetches = 0;
	const source = new ListedSource({
		own,
		fetch: async () => signed(given[Math.min(fetches++, given.length - 1)]!),
		slicesOf: ({ layers }) => ({
			digestOf: (layer, expert) => layers[layer]!.slices[expert]!,
			bytesOf: () => 1,
			expert: () => Promise.reject(new Error("not asked")),
		}),
		replaced: async (...both) => void replaced.push(both),
		onEvent: (event) => events.push(event),
		clock: systemClock,
		log: silentLog,
		...change,
	});
	return { source, events, replaced, fetches: () => fetches };
}

describe("ListedSource of slices", () => {
	it("fetches the manifest once for assignments that go by it, or by none yet", async () => {
		const { source, fetches } = startScene([manifest]);
		const first = await source.under(null, live);
		expect(await source.under(digestOf(manifest), live)).toBe(first);
		expect(await source.under(null, live)).toBe(first);
		expect(fetches()).toBe(1);
	});

	it("fetches it again for an assignment by another one, and goes by that", async () => {
		const { source, replaced, events, fetches } = startScene([manifest, changed]);
		await source.under(digestOf(manifest), live);
		const now = (await source.under(digestOf(changed), live)) as SliceSource;
		expect(now.digestOf(1, 2)).toBe("ab".repeat(32));
		expect(replaced.map(([before]) => before?.digestOf(1, 2))).toEqual([undefined, manifest.layers[1]!.slices[2]]);
		expect([fetches(), events]).toEqual([2, []]);
	});

	it("takes nothing of an assignment by a manifest that is not to be had, says so once, and takes the next that fits", async () => {
		const { source, events } = startScene([manifest]);
		const before = await source.under(digestOf(manifest), live);
		expect(await source.under(digestOf(changed), live)).toBeNull();
		expect(await source.under(digestOf(changed), live)).toBeNull();
		expect(events).toEqual([
			expect.objectContaining({
				event: "problem",
				code: "model_mismatch",
				message: expect.stringContaining(Buffer.from(digestOf(changed)).toString("hex").slice(0, 12)),
			}),
		]);
		expect(await source.under(digestOf(manifest), live)).toBe(before);
	});
});

describe("ListedSource of a file", () => {
	const read = async () => {
		const file = fileSource({ name: "tiny", weights: model.weights });
		for (let expert = 0; expert < dims.experts; expert++) await file.expert(1, expert, live);
		return file;
	};

	it("is the file where the assigned manifest lists it, compared once", async () => {
		const file = await read();
		const { source, fetches } = startScene([manifest], file);
		expect(await source.under(digestOf(manifest), live)).toBe(file);
		expect(await source.under(digestOf(manifest), live)).toBe(file);
		expect(fetches()).toBe(1);
	});

	it("throws model_mismatch naming the expert where the assigned manifest lists another, and takes nothing where that is not to be had", async () => {
		const { source } = startScene([manifest, changed], await read());
		await source.compareFile(live);
		await expect(source.under(digestOf(changed), live)).rejects.toMatchObject({
			code: "model_mismatch",
			facts: { layer: 1, expert: 2 },
		});
		const stale = startScene([manifest], await read());
		expect(await stale.source.under(digestOf(changed), live)).toBeNull();
		expect(stale.events).toHaveLength(1);
	});

	it("is the file where no manifest can be had: refused, late, or with nowhere to fetch from", async () => {
		const file = await read();
		const failing = { fetch: () => Promise.reject(new Error("404")) };
		expect(await startScene([], file, failing).source.under(digestOf(manifest), live)).toBe(file);
		const silent = {
			fetch: (signal: AbortSignal) =>
				new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
			clock: { ...systemClock, after: (_: number, fn: () => void) => systemClock.after(20, fn) },
		};
		expect(await startScene([], file, silent).source.under(digestOf(manifest), live)).toBe(file);
		expect(await startScene([], file, { fetch: null }).source.under(digestOf(manifest), live)).toBe(file);
	});
});
