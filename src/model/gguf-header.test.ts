import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { GgufCursor, GgufFormatError, WindowTooSmall } from "./gguf-cursor.ts";
import { readHeader } from "./gguf-header.ts";

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

test("readHeader() answers any changed header with a header or a format error, quickly", () => {
	const change = fc.record({
		// Half of the changes hit the dense start, where counts and types are.
		at: fc.oneof(fc.nat(255), fc.nat(header.length - 1)),
		bytes: fc.uint8Array({ minLength: 1, maxLength: 9 }),
	});
	let refused = 0;
	fc.assert(
		fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
			const copy = Buffer.from(header);
			for (const { at, bytes } of changes) copy.set(bytes.subarray(0, copy.length - at), at);
			if (outcome(copy, fixture.length) === "refused") refused++;
		}),
		{ numRuns: 400 },
	);
	expect(refused).toBeGreaterThan(50);
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
		{ numRuns: 300 },
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
