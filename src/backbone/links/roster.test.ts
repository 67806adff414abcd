import { afterEach, describe, expect, test } from "vitest";
import { settle } from "../../../test/support/fake-clock.ts";
import { everything, type MemoryBackbone, memoryBackbone, requestOf } from "../../../test/support/memory-backbone.ts";
import { scriptedIdentity } from "../../../test/support/scripted-worker.ts";
import { addressOf } from "../../io/base58.ts";
import { decideTakeover } from "./takeover.ts";

const bytes = (value: number) => new Uint8Array(16).fill(value);

describe("decideTakeover()", () => {
	const incumbent = { instance: bytes(1), epoch: 5 };
	test.each([
		["nobody has the link", { instance: bytes(1), epoch: 1 }, null, -1, "admit"],
		["the same instance, a higher epoch", { instance: bytes(1), epoch: 6 }, incumbent, 5, "take_over"],
		["the same instance, the same epoch", { instance: bytes(1), epoch: 5 }, incumbent, 5, "stale"],
		["the same instance, an epoch of before, link gone", { instance: bytes(1), epoch: 4 }, null, 5, "stale"],
		["another instance", { instance: bytes(2), epoch: 1 }, incumbent, -1, "ask_incumbent"],
	])("%s: %s", (_, newcomer, current, lastEpoch, expected) => {
		expect(decideTakeover(newcomer, current, lastEpoch).kind).toBe(expected);
	});
});

describe("Roster", () => {
	let backbone: MemoryBackbone;
	afterEach(() => backbone.close());
	const joined = () => backbone.events.map(({ event }) => event);

	test("the successor of a process takes its link over at once, and its open work with it", async () => {
		backbone = memoryBackbone();
		const old = await backbone.join({ epoch: 1, onDispatch() {} });
		const asked = backbone.dispatcher.request(requestOf([[0, 1]]));
		await settle();
		const successor = await backbone.join({ epoch: 2 });
		expect((await old.ended).code).toBe(4409);
		expect(old.others).toContainEqual(expect.objectContaining({ kind: "bye", code: "taken_over" }));
		const answer = await asked;
		expect([...answer.worker]).toEqual([0, 0]);
		expect(successor.dispatches.length).toBe(1);
		expect(backbone.roster.workers.length).toBe(1);
		await settle();
		expect(joined()).toEqual(["joined", "joined", "left"]);
	});

	test("an epoch already seen is refused with the current one", async () => {
		backbone = memoryBackbone();
		await backbone.join({ epoch: 7 });
		const copy = await backbone.join({ epoch: 7 });
		await copy.ended;
		expect(copy.others).toContainEqual({ kind: "refuse", id: null, code: "stale_epoch", text: "7" });
		expect(backbone.roster.workers[0]!.hello.epoch).toBe(7);
		expect(backbone.events.at(-1)).toMatchObject({ event: "refused", reason: "stale_epoch" });
	});

	test("another machine with the same key is turned away while the first one lives", async () => {
		backbone = memoryBackbone();
		const first = await backbone.join({ instance: 1 });
		const second = await backbone.join({ instance: 2 });
		await backbone.clock.advance(1000);
		await second.ended;
		expect(second.others).toContainEqual(
			expect.objectContaining({ kind: "bye", code: "key_in_use", retryAfterMs: 300_000 }),
		);
		expect(backbone.roster.workers[0]!.hello.instance).toEqual(bytes(1));
		expect(first.others).toEqual([]);
	});

	test("and takes over from one that shows no sign of life for 5 s", async () => {
		backbone = memoryBackbone();
		let mute = false;
		const silent = await backbone.join(
			{ instance: 1 },
			{ passage: (_, from) => (mute && from === "b" ? { drop: true } : undefined) },
		);
		mute = true;
		const second = await backbone.join({ instance: 2 });
		await backbone.clock.advance(4000);
		expect(backbone.roster.workers[0]!.hello.instance).toEqual(bytes(1));
		await backbone.clock.advance(1500);
		expect(backbone.roster.workers.map(({ hello }) => hello.instance)).toEqual([bytes(2)]);
		expect((await silent.ended).code).toBe(4409);
		await backbone.dispatcher.request(requestOf([[0, 1]]));
		expect(second.dispatches.length).toBe(1);
	});

	test("a bad set of experts ends the link", async () => {
		backbone = memoryBackbone();
		const worker = await backbone.join({ holds: [{ layer: 2, first: 7, count: 2 }] });
		expect((await worker.ended).code).toBe(4400);
		const other = await backbone.join({ seed: 2 });
		other.link.send({ kind: "holding", ready: [{ layer: 9, first: 0, count: 1 }] });
		expect((await other.ended).code).toBe(4400);
		expect(backbone.roster.usable).toEqual([]);
	});

	test("counts holders, and follows what workers say they hold", async () => {
		backbone = memoryBackbone();
		const worker = await backbone.join({ seed: 1, holds: [] });
		await backbone.join({ seed: 2, holds: [{ layer: 1, first: 2, count: 3 }] });
		worker.link.send({ kind: "holding", ready: [{ layer: 1, first: 0, count: 3 }] });
		await settle();
		expect([...backbone.roster.coverage().subarray(8, 16)]).toEqual([1, 1, 2, 1, 1, 0, 0, 0]);
	});

	test("holdings of another model do not count", async () => {
		backbone = memoryBackbone();
		await backbone.join({ holds: everything, modelId: new Uint8Array(32).fill(9) });
		expect(backbone.roster.workers[0]!.holdings.count).toBe(0);
	});

	test("a quarantined key gets no work, also not over a new link, until it expires; the next time is longer", async () => {
		backbone = memoryBackbone();
		await backbone.join({ epoch: 1 });
		backbone.roster.quarantine(backbone.roster.workers[0]!);
		expect(backbone.roster.usable).toEqual([]);
		await backbone.join({ epoch: 2 });
		expect(backbone.roster.workers[0]!.hello.epoch).toBe(2);
		expect(backbone.roster.usable).toEqual([]);
		await backbone.clock.advance(600_001);
		expect(backbone.roster.usable.length).toBe(1);
		backbone.roster.quarantine(backbone.roster.workers[0]!);
		await backbone.clock.advance(600_001);
		expect(backbone.roster.usable).toEqual([]);
		expect(backbone.events.at(-1)).toMatchObject({ event: "quarantined", durationMs: 1_200_000 });
	});

	test("a draining worker finishes what it has and gets nothing new", async () => {
		backbone = memoryBackbone();
		const worker = await backbone.join({ onDispatch() {} });
		const asked = backbone.dispatcher.request(requestOf([[0, 1]]));
		await settle();
		worker.link.send({ kind: "drain", reason: "stopping", graceMs: 5000 });
		await settle();
		worker.answer(worker.dispatches[0]!);
		expect([...(await asked).worker]).toEqual([0, 0]);
		expect([...(await backbone.dispatcher.request(requestOf([[0, 1]]))).worker]).toEqual([-1, -1]);
		expect(worker.dispatches.length).toBe(1);
	});

	test("the address is the key's", async () => {
		backbone = memoryBackbone();
		await backbone.join({ seed: 9 });
		expect(backbone.roster.workers[0]!.address).toBe(addressOf(scriptedIdentity(9).publicKey));
	});
});
