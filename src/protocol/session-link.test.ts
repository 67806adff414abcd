import { describe, expect, it } from "vitest";
import { fakeClock, settle } from "../../test/support/fake-clock.ts";
import { linkPair } from "../../test/support/link-pair.ts";
import { bytes, sampleHidden, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { sha256 } from "../io/crypto.ts";
import { limits } from "./limits.ts";
import type { Passage } from "./memory-transport.ts";
import { closeCodes, type SessionMessage } from "./messages.ts";
import { createTagger } from "./tag.ts";

/** A linked pair whose messages pass through `fate`, once set. */
async function pairWith(welcome = sampleWelcomeBody) {
	const clock = fakeClock();
	const fate: { of: ((message: Uint8Array, from: "a" | "b") => Passage | undefined) | null } = { of: null };
	const memory = { clock, passage: (message: Uint8Array, from: "a" | "b") => fate.of?.(message, from) };
	const pair = await linkPair({ clock, memory, welcome });
	return { clock, fate, ...pair };
}

const holding: SessionMessage = { kind: "holding", ready: [] };

describe("createTagger()", () => {
	it("binds a tag to key, place and every byte", () => {
		const key = bytes(32);
		const digest = sha256(bytes(8));
		const tag = createTagger(key).next(digest);
		expect(tag).toHaveLength(16);
		expect(createTagger(key).check(tag, digest)).toBe(true);
		expect(createTagger(key).check(tag, sha256(bytes(8, 1)))).toBe(false);
		expect(createTagger(bytes(32, 1)).check(tag, digest)).toBe(false);
		const second = createTagger(key);
		second.next(digest);
		expect(second.check(tag, digest)).toBe(false);
	});
});

describe("session link", () => {
	it.each([
		[
			"changed",
			(message: Uint8Array) => ({ replace: Uint8Array.from(message, (byte, i) => (i === 1 ? byte ^ 1 : byte)) }),
		],
		["cut", (message: Uint8Array) => ({ replace: message.subarray(0, message.length - 1) })],
		["shorter than a tag", () => ({ replace: bytes(3) })],
	])("ends with 4400 bad_tag when a message is %s", async (_, change) => {
		const { worker, backbone, fate } = await pairWith();
		fate.of = change;
		worker.send(holding);
		expect(await backbone.ended).toEqual({ code: closeCodes.malformed, reason: "bad_tag" });
		expect(await worker.ended).toEqual({ code: closeCodes.malformed, reason: "bad_tag" });
	});

	it.each(["lost", "repeated"])("ends with 4400 bad_tag when a message is %s", async (what) => {
		const { worker, backbone, transports, fate } = await pairWith();
		let first: Uint8Array | null = null;
		fate.of = (message) => {
			if (first !== null) return undefined;
			first = message;
			return { drop: what === "lost" };
		};
		worker.send(holding);
		if (what === "repeated") transports[0].send([first!]);
		else worker.send(holding);
		expect(await backbone.ended).toEqual({ code: closeCodes.malformed, reason: "bad_tag" });
	});

	it("ends with 4400 when a message is not this side's to receive", async () => {
		const { worker, backbone } = await pairWith();
		worker.send({ kind: "cancel", id: 1 });
		expect(await backbone.ended).toEqual({
			code: closeCodes.malformed,
			reason: "malformed: cancel is not for a backbone",
		});
	});

	it("names the field of a malformed message", async () => {
		const { worker, backbone } = await pairWith();
		worker.send({ kind: "partials", id: 1, computeUs: 1, dtype: "f32", vectors: bytes(sampleHidden * 4 + 1) });
		expect(await backbone.ended).toEqual({ code: closeCodes.malformed, reason: "malformed: vectors" });
	});

	it("keeps what arrives before its owner listens, within bounds", async () => {
		const { worker, backbone } = await pairWith();
		for (let id = 1; id <= 3; id++) worker.send({ kind: "refuse", id, code: "overloaded", text: "" });
		await settle();
		const seen: number[] = [];
		backbone.onMessage = (message) => message.kind === "refuse" && seen.push(message.id ?? 0);
		expect(seen).toEqual([1, 2, 3]);
		backbone.onMessage = null;
		for (let id = 0; id <= limits.inboxMessages; id++) worker.send(holding);
		expect(await backbone.ended).toMatchObject({ code: closeCodes.tooBig });
	});

	it("answers pings and measures the round trip by its own clock", async () => {
		const { worker, clock, fate } = await pairWith();
		fate.of = () => ({ delayMs: 40 });
		expect(worker.roundTripMs).toBeNull();
		await clock.advance(100);
		expect(worker.roundTripMs).toBe(80);
	});

	it("stays alive on pings alone, and dies after deadMs of silence", async () => {
		const { worker, backbone, clock, fate } = await pairWith();
		await clock.advance(10 * limits.deadMs);
		worker.send(holding);
		let ended = false;
		backbone.ended.then(() => {
			ended = true;
		});
		await settle();
		expect(ended).toBe(false);
		fate.of = () => ({ drop: true });
		await clock.advance(limits.deadMs - limits.heartbeatMs);
		expect(ended).toBe(false);
		await clock.advance(limits.heartbeatMs + limits.deadMs / 4);
		// Whoever noticed first terminated; for the other the connection went away.
		const ends = await Promise.all([backbone.ended, worker.ended]);
		expect(ends).toContainEqual({ code: closeCodes.deadPeer, reason: "dead_peer" });
		expect(clock.pending).toBe(0);
	});

	it("sends nothing, and never throws, once it has ended", async () => {
		const { worker, backbone } = await pairWith();
		worker.close(closeCodes.normal, "done");
		worker.send(holding);
		expect(await backbone.ended).toEqual({ code: closeCodes.normal, reason: "done" });
		backbone.close(closeCodes.normal, "again");
		backbone.send({ kind: "cancel", id: 1 });
	});
});
