import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plainEngine, plainModel } from "../../test/support/plain-engine.ts";
import { bytes } from "../../test/support/sample-messages.ts";
import { sliceOf } from "../model/expert-slice.ts";
import { fileSource } from "./expert-source.ts";
import { expertsOf, HeldExperts, parseHold } from "./held-experts.ts";
import { changeHoldings, loadExperts } from "./load-experts.ts";

const dims = { layers: 3, experts: 10, hidden: 8, width: 4 };
const model = plainModel(dims, bytes(32));
const source = fileSource(model);
const { signal } = new AbortController();

describe("HeldExperts", () => {
	it("tells its runs, whatever the order of what came and went", () => {
		const expert = fc.tuple(fc.nat(3), fc.nat(20));
		fc.assert(
			fc.property(fc.array(expert, { maxLength: 60 }), fc.array(expert, { maxLength: 30 }), (added, deleted) => {
				const held = new HeldExperts();
				for (const [layer, id] of added) held.add(layer, id);
				for (const [layer, id] of deleted) held.delete(layer, id);
				const left = new Set(added.map(String));
				for (const gone of deleted) left.delete(String(gone));
				const told = [...expertsOf(held.ranges())].map(String);
				expect(new Set(told)).toEqual(left);
				expect([told.length, held.count]).toEqual([left.size, left.size]);
				expect(held.ranges().every(({ count }) => count > 0)).toBe(true);
			}),
		);
	});
});

describe("parseHold()", () => {
	const six = { layers: 6, experts: 16 };
	it.each([
		["all:0-7", 6, 8],
		["3:4", 1, 1],
		["0-1:all", 2, 16],
		["0,2-3,2:15-15", 3, 1],
	])("reads %s", (text, layers, count) => {
		const ranges = parseHold(text, six);
		expect(ranges).toHaveLength(layers);
		expect(ranges.every((range) => range.count === count)).toBe(true);
	});

	it.each(["", "all", "1:2:3", "6:0", "0:16", "0:5-2", "x:1", "0:-1", "0,:1", "0:1.5"])("refuses %s", (text) => {
		expect(() => parseHold(text, six)).toThrow(expect.objectContaining({ code: "usage" }));
	});
});

describe("loadExperts()", () => {
	it("loads each once, in order, and tells how far it is", async () => {
		const engine = plainEngine();
		const held = new HeldExperts();
		const progress: string[] = [];
		const options = { source, signal, engine, held, asMuchAsFits: false };
		await loadExperts(parseHold("0:2-4", dims), {
			...options,
			onProgress: (done, total) => progress.push(`${done}/${total}`),
		});
		expect(progress).toEqual(["1/3", "2/3", "3/3"]);
		expect(engine.bytesHeld).toBe(3 * sliceOf(await model.weights.expert(0, 0)).length);
		await changeHoldings(parseHold("0:4-5", dims), options);
		expect(held.ranges()).toEqual([{ layer: 0, first: 4, count: 2 }]);
		expect([engine.has(0, 2), engine.has(0, 5)]).toEqual([false, true]);
	});

	it("is an error when what was asked does not fit, and not when nobody said how much", async () => {
		const ranges = parseHold("all:0-3", dims);
		const strict = { source, signal, engine: plainEngine("f32", 5), held: new HeldExperts(), asMuchAsFits: false };
		await expect(loadExperts(ranges, strict)).rejects.toMatchObject({ code: "out_of_memory", facts: { loaded: 5 } });
		const loose = { source, signal, engine: plainEngine("f32", 5), held: new HeldExperts(), asMuchAsFits: true };
		expect(await loadExperts(ranges, loose)).toBe(false);
		expect(loose.held.count).toBe(5);
	});
});
