import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../test/support/long.ts";
import { type ErrorCode, KvasirError } from "../errors.ts";
import { packagePath } from "../io/built.ts";
import { GgufCursor, GgufFormatError, WindowTooSmall } from "./gguf-cursor.ts";
import { readHeader } from "./gguf-header.ts";
import { shapeOf } from "./shape-of.ts";
import { checkTensors } from "./tensor-plan.ts";
import { tokenizerOf } from "./tokenizer.ts";

const fixture = readFileSync(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
const { dataOffset } = readHeader(new GgufCursor(fixture, fixture.length), 0);
const header = fixture.subarray(0, dataOffset);

/** Reads a header as of a file of `fileBytes`; anything but a header or a format error fails the test. */
function outcome(bytes: Uint8Array, fileBytes: number): "read" | "refused" {
	try {
		readHeader(new GgufCursor(bytes, fileBytes), 0);
		return "read";
	} catch (error) {
		if (error instanceof GgufFormatError || error instanceof WindowTooSmall) return "refused";
		throw error;
	}
}

test("readHeader() reads the fixture", () => {
	expect(outcome(header, fixture.length)).toBe("read");
});

/** Opens a header all the way, as `openModel` and the tokenizer do. */
function openAll(bytes: Uint8Array): "opened" | ErrorCode | "bad header" {
	try {
		const { metadata, tensors } = readHeader(new GgufCursor(bytes, fixture.length), 0);
		const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
		checkTensors(shapeOf(metadata, byName), byName);
		tokenizerOf(metadata);
		return "opened";
	} catch (error) {
		if (error instanceof KvasirError) return error.code;
		if (error instanceof GgufFormatError || error instanceof WindowTooSmall) return "bad header";
		throw error;
	}
}

test("a changed header ends as a model or as a typed error, whatever was changed", () => {
	const change = fc.record({
		// Some hit the dense start, where counts and the model's keys are, some the tensor list at the end.
		at: fc.oneof(
			fc.nat(1200),
			fc.nat(header.length - 1),
			fc.integer({ min: header.length - 3000, max: header.length - 1 }),
		),
		bytes: fc.uint8Array({ minLength: 1, maxLength: 9 }),
	});
	const seen = new Set<string>();
	fc.assert(
		fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
			const copy = Buffer.from(header);
			for (const { at, bytes } of changes) copy.set(bytes.subarray(0, copy.length - at), at);
			seen.add(openAll(copy));
		}),
		{ numRuns: runs(400, 50_000) },
	);
	expect(seen).toContain("bad header");
	expect([...seen]).not.toContain("internal");
});

test("readHeader() refuses counts the file is too short for, before it allocates", () => {
	const count = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n });
	fc.assert(
		fc.property(count, count, fc.boolean(), (tensors, keys, arrayCount) => {
			const bytes = Buffer.alloc(64);
			bytes.write("GGUF");
			bytes.writeUInt32LE(3, 4);
			bytes.writeBigUInt64LE(arrayCount ? 0n : tensors, 8);
			bytes.writeBigUInt64LE(arrayCount ? 1n : keys, 16);
			if (arrayCount) {
				// A key "k" that claims an array of u8.
				bytes.writeBigUInt64LE(1n, 24);
				bytes.write("k", 32);
				bytes.writeUInt32LE(9, 33);
				bytes.writeUInt32LE(0, 37);
				bytes.writeBigUInt64LE(keys, 41);
			}
			const before = process.memoryUsage().arrayBuffers;
			const read = outcome(bytes, bytes.length);
			expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 20);
			if (!arrayCount || keys > 15n) expect(read).toBe("refused");
		}),
	);
});

test("readHeader() refuses random bytes behind a good magic", () => {
	fc.assert(
		fc.property(fc.uint8Array({ minLength: 16, maxLength: 400 }), (tail) => {
			const bytes = Buffer.concat([Buffer.from("GGUF\x03\0\0\0"), tail]);
			expect(["read", "refused"]).toContain(outcome(bytes, bytes.length));
		}),
		{ numRuns: runs(300, 50_000) },
	);
});

test("readHeader() refuses arrays nested too deep", () => {
	const bytes = Buffer.alloc(400);
	bytes.write("GGUF");
	bytes.writeUInt32LE(3, 4);
	bytes.writeBigUInt64LE(1n, 16);
	bytes.writeBigUInt64LE(1n, 24);
	bytes.write("k", 32);
	let at = 33;
	bytes.writeUInt32LE(9, at);
	at += 4;
	for (let depth = 0; depth < 20; depth++) {
		bytes.writeUInt32LE(9, at);
		bytes.writeBigUInt64LE(1n, at + 4);
		at += 12;
	}
	expect(() => readHeader(new GgufCursor(bytes, bytes.length), 0)).toThrow(/at most 4 nested arrays/);
});
