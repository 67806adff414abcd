import { readFileSync } from "node:fs";
import fc from "fast-check";
import { Unpackr } from "msgpackr";
import { describe, expect, it } from "vitest";
import { runs } from "../../test/support/long.ts";
import {
	bytes,
	sampleHandshakes,
	sampleHidden,
	sampleSessions,
	sampleWelcomeBody,
} from "../../test/support/sample-messages.ts";
import { KvasirError } from "../errors.ts";
import { sha256 } from "../io/crypto.ts";
import { decodeHandshake, decodeSession, encodeHandshake, encodeSession } from "./codec.ts";
import { decodeWelcomeBody, encodeWelcomeBody } from "./handshake-codec.ts";
import { limits } from "./limits.ts";
import { type Dispatch, messageKinds, type SessionMessage } from "./messages.ts";
import { MsgpackWriter } from "./msgpack-writer.ts";
import { createTagger } from "./tag.ts";
import { tensorBytes } from "./tensor.ts";

type Sendable = Exclude<SessionMessage, { kind: "unknown" }>;

function whole(message: Sendable): Uint8Array {
	const { header, tensor } = encodeSession(message);
	return Buffer.concat([header, tensor ?? new Uint8Array(0)]);
}

function plain(value: unknown): unknown {
	return JSON.parse(
		JSON.stringify(value, (_, part) =>
			part instanceof Uint8Array || part?.type === "Buffer" ? Buffer.from(part.data ?? part).toString("hex") : part,
		),
	);
}

function thrown(action: () => unknown): KvasirError {
	try {
		action();
	} catch (error) {
		expect(error).toBeInstanceOf(KvasirError);
		return error as KvasirError;
	}
	throw new Error("nothing was thrown");
}

const dispatch = sampleSessions.find((message) => message.kind === "dispatch") as Dispatch;

describe("golden frames", () => {
	// Changed on purpose? Then the protocol's version changes too, or a field was added at the end of a message.
	const golden = JSON.parse(readFileSync(new URL("../../fixtures/golden/frames.json", import.meta.url), "utf8"));
	const tagger = createTagger(bytes(32, 90));
	const frames: Record<string, string> = {};
	for (const message of sampleHandshakes) frames[message.kind] = hex(encodeHandshake(message));
	frames.welcomeBody = hex(encodeWelcomeBody(sampleWelcomeBody));
	for (const [index, message] of sampleSessions.entries()) {
		frames[`${index} ${message.kind}`] = hex(whole(message), tagger.next(sha256(whole(message))));
	}

	it("covers every kind", () => {
		const covered = Object.keys(golden).map((name) => name.split(" ").at(-1));
		expect(new Set(covered)).toEqual(new Set([...Object.keys(messageKinds), "welcomeBody"]));
	});

	it.each(Object.keys(golden))("%s has not changed", (name) => {
		expect(frames[name]).toBe(golden[name]);
	});

	it("are msgpack to an independent reader", () => {
		const reader = new Unpackr({ useRecords: false });
		for (const message of sampleSessions) {
			const array = reader.unpack(whole(message)) as unknown[];
			expect(array[0]).toBe(messageKinds[message.kind]);
		}
		expect(reader.unpack(encodeHandshake(sampleHandshakes[0]!))).toHaveLength(12);
	});

	function hex(...parts: Uint8Array[]): string {
		return Buffer.concat(parts).toString("hex");
	}
});

describe("decodeHandshake()", () => {
	it.each(sampleHandshakes)("reads back $kind", (message) => {
		expect(plain(decodeHandshake(encodeHandshake(message)))).toEqual(plain(message));
	});

	it("recognises another version whatever follows it", () => {
		const w = new MsgpackWriter().array(3).uint(0).uint(2).text("unknown future");
		expect(decodeHandshake(w.bytes)).toEqual({ kind: "other_version", version: 2 });
	});

	it("reads back welcome's body", () => {
		expect(plain(decodeWelcomeBody(encodeWelcomeBody(sampleWelcomeBody)))).toEqual(plain(sampleWelcomeBody));
	});
});

describe("decodeSession()", () => {
	it.each(sampleSessions)("reads back $kind", (message) => {
		expect(plain(decodeSession(whole(message), sampleHidden))).toEqual(plain(message));
	});

	it("reads back any dispatch", () => {
		const anyDispatch = fc
			.record({
				id: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
				layer: fc.integer({ min: 0, max: limits.layers - 1 }),
				deadlineMs: fc.nat(),
				mode: fc.constantFrom(0 as const, 1 as const),
				dtype: fc.constantFrom("f32" as const, "f16" as const, "q14" as const),
				hidden: fc.integer({ min: 1, max: 600 }),
				rowPairs: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 20 }),
			})
			.map(({ hidden, rowPairs, ...rest }) => {
				const rowIndex = Uint16Array.from(rowPairs.flatMap((pairs, row) => Array(pairs).fill(row)));
				const message: Dispatch = {
					kind: "dispatch",
					...rest,
					rowCount: rowPairs.length,
					rowIndex,
					expert: rowIndex.map((row) => (row * 37) % limits.experts),
					weight: rest.mode === 1 ? Float32Array.from(rowIndex, (row) => row / 7) : new Float32Array(0),
					rows: bytes(tensorBytes(rest.dtype, rowPairs.length, hidden)),
				};
				return { hidden, message };
			});
		fc.assert(
			fc.property(anyDispatch, fc.integer({ min: 0, max: 7 }), ({ hidden, message }, shift) => {
				// At any alignment: the bytes of a message lie wherever the socket put them.
				const encoded = whole(message);
				const buffer = new Uint8Array(encoded.length + shift);
				buffer.set(encoded, shift);
				expect(plain(decodeSession(buffer.subarray(shift), hidden))).toEqual(plain(message));
			}),
			{ numRuns: runs(100, 5_000) },
		);
	});

	it("answers an unknown kind with a value, and ignores elements of a newer peer", () => {
		const unknown = new MsgpackWriter().array(3).uint(99).text("x").nil();
		expect(decodeSession(unknown.bytes, 4)).toEqual({ kind: "unknown", number: 99 });
		const newer = new MsgpackWriter().array(4).uint(messageKinds.cancel).uint(5).array(1).text("more").bin(bytes(3));
		expect(decodeSession(newer.bytes, 4)).toEqual({ kind: "cancel", id: 5 });
	});

	it.each([
		["rowCount", { rowCount: limits.rows + 1 }, "bounds"],
		["layer", { layer: limits.layers }, "bounds"],
		["rows", { rows: bytes(31) }, "malformed"],
		["expert", { expert: new Uint16Array([1, 2]) }, "malformed"],
		["expert", { expert: new Uint16Array([1, 2, limits.experts]) }, "bounds"],
		["rowIndex", { rowIndex: new Uint16Array([0, 1, 2]) }, "bounds"],
		["rowIndex", { rowIndex: new Uint16Array([1, 0, 1]) }, "malformed"],
		["weight", { weight: new Float32Array([1, 2, 3]) }, "malformed"],
		["weight", { mode: 1 as const, weight: new Float32Array([1, Number.NaN, 3]) }, "bounds"],
		["rowIndex", { rowIndex: new Uint16Array(limits.pairs + 1) }, "bounds"],
	])("refuses a dispatch with a wrong %s", (field, change, code) => {
		const error = thrown(() => decodeSession(whole({ ...dispatch, ...change }), sampleHidden));
		expect([error.code, error.facts.field]).toEqual([code, field]);
	});

	it("refuses a dispatch whose answer would not fit a message", () => {
		const hidden = 4096;
		const pairs = 1025;
		const huge = {
			...dispatch,
			rowCount: 1,
			rowIndex: new Uint16Array(pairs),
			expert: new Uint16Array(pairs),
			rows: new Uint8Array(hidden * 4),
		};
		expect(thrown(() => decodeSession(whole(huge), hidden)).code).toBe("bounds");
	});

	it("refuses text, ranges, nesting and numbers beyond their bounds", () => {
		const write = () => new MsgpackWriter();
		const cases: [Uint8Array, string][] = [
			[write().array(4).uint(8).nil().text("x").binHeader(0).bytes, "malformed"],
			[Buffer.concat([write().array(4).uint(8).nil().bytes, Buffer.from([0xda, 1, 1]), bytes(257)]), "bounds"],
			[write().array(2).uint(5).array(1).array(3).uint(0).uint(4000).uint(97).bytes, "bounds"],
			[write().array(3).uint(99).array(1).array(1).array(1).array(1).nil().bytes, "bounds"],
			[Buffer.from([0x92, 0x09, 0xcf, 0, 0x20, 0, 0, 0, 0, 0, 0]), "bounds"],
			[Buffer.from([0x92, 0x09, 0xff]), "bounds"],
			[Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff, 0x09]), "malformed"],
			[Buffer.from([0x92, 0x05, 0xdd, 0xff, 0xff, 0xff, 0xff]), "malformed"],
			[Buffer.concat([whole({ kind: "cancel", id: 1 }), bytes(1)]), "malformed"],
			[new Uint8Array(0), "malformed"],
			[new Uint8Array(limits.messageBytes + 1), "bounds"],
		];
		for (const [message, code] of cases) expect(thrown(() => decodeSession(message, 4)).code).toBe(code);
	});

	it("never fails otherwise than with malformed or bounds, on any bytes and any damaged message", () => {
		const samples = [...sampleSessions.map(whole), ...sampleHandshakes.map(encodeHandshake)];
		const damaged = fc
			.record({
				base: fc.constantFrom(...samples),
				edits: fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }),
				cut: fc.option(fc.nat(), { nil: null }),
				more: fc.uint8Array({ maxLength: 8 }),
			})
			.map(({ base, edits, cut, more }) => {
				const copy = Uint8Array.from(base);
				for (const [at, value] of edits) copy[at % copy.length] = value;
				return Buffer.concat([cut === null ? copy : copy.subarray(0, cut % (copy.length + 1)), more]);
			});
		const survives = (message: Uint8Array) => {
			for (const decode of [() => decodeSession(message, sampleHidden), () => decodeHandshake(message)]) {
				try {
					decode();
				} catch (error) {
					if (!(error instanceof KvasirError) || !["malformed", "bounds"].includes(error.code)) throw error;
					expect(error.facts.field).toBeTypeOf("string");
				}
			}
		};
		fc.assert(fc.property(damaged, survives), { numRuns: runs(4_000, 100_000) });
		fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), survives), { numRuns: runs(4_000, 100_000) });
	});
});

describe("encodeSession()", () => {
	it("does not copy the tensor", () => {
		expect(encodeSession(dispatch).tensor).toBe(dispatch.rows);
	});

	it("cuts text at a whole character", () => {
		const message = decodeSession(whole({ kind: "refuse", id: null, code: "x", text: "é".repeat(300) }), 4);
		expect(message).toMatchObject({ text: "é".repeat(128) });
	});

	it("refuses a message above 16 MiB", () => {
		const vectors = new Uint8Array(limits.messageBytes);
		expect(thrown(() => encodeSession({ kind: "partials", id: 1, computeUs: 1, dtype: "f32", vectors })).code).toBe(
			"bounds",
		);
	});
});
