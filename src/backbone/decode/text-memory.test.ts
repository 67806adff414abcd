import { expect, test } from "vitest";
import { type Block, TextMemory } from "./text-memory.ts";

const options = { workBytes: 4096, blockBytesMost: 65_536, eachBytes: 0 }; // four blocks of 64 KiB in each memory

test("memories come as they are needed and go when they are empty; constants are in each of them", () => {
	const memory = new TextMemory(options);
	const constant = Float32Array.from({ length: 21 }, (_, i) => i / 8);
	const at = memory.addConstant(constant);
	const blocks: Block[] = [];
	for (let i = 0; i < 9; i++) blocks.push(memory.allocate(65_536));
	expect([memory.memoryCount, memory.bytesHeld]).toEqual([3, 9 * 65_536]);
	for (const { memory: own, at: address } of blocks) {
		expect(own.floats.subarray(at / 4, at / 4 + 21)).toEqual(constant);
		expect(address).toBeGreaterThanOrEqual(at + constant.byteLength);
	}
	memory.release(blocks.pop()!);
	expect(memory.memoryCount).toBe(2);
	const [first, ...others] = blocks;
	memory.release(first!);
	const again = memory.allocate(60_000);
	expect(again.at).toBe(first!.at);
	expect(again.memory).toBe(first!.memory);
	for (const block of others) memory.release(block);
	expect([memory.memoryCount, memory.bytesHeld]).toEqual([1, 60_032]);
	expect(() => memory.addConstant(constant)).toThrow("texts have begun");
});

test("more than there may be is refused with a hint, and nothing is taken", () => {
	const memory = new TextMemory({ ...options, bytesMost: 100_000 });
	const block = memory.allocate(65_536);
	const full = expect.objectContaining({ code: "out_of_memory", hint: expect.stringContaining("fewer texts") });
	expect(() => memory.allocate(65_536)).toThrow(full);
	expect(memory.bytesHeld).toBe(65_536);
	memory.release(block);
	expect(memory.allocate(65_536).bytes).toBe(65_536);
	expect(() => new TextMemory(options).allocate(2 ** 32)).toThrow(full);
});
