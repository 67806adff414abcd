import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasDevice, openAnyDevice, runShader } from "../../../test/support/device.ts";
import { f16ToF32 } from "../../model/half.ts";
import { Xorshift } from "../../model/xorshift.ts";
import { exp32, silu } from "../reference.ts";
import type { OpenDevice } from "./adapters.ts";
import { floatWgsl } from "./wgsl-float.ts";

const groups = 4096;
const count = groups * 64;
const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);
const toFloat = (word: number): number => {
	bits[0] = word;
	return float[0]!;
};
const toBits = (value: number): number => {
	float[0] = value;
	return bits[0]!;
};

/** Every kind of pattern whose neighbourhood has a rule of its own: zeros, denormals, powers of two, the largest, infinity. */
const special = [
	0, 1, 2, 0x7fffff, 0x800000, 0x800001, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x4b000000, 0x4b7fffff,
].concat([0x7f7fffff, 0x7f000000, 0x7f800000, 0x33800000, 0x34000000, 0x1f800000, 0x45fff800, 0x00400000, 0x42ae0000]);

let open: OpenDevice;
beforeAll(async () => {
	if (hasDevice) open = await openAnyDevice();
});
afterAll(() => open?.device.destroy());

/** Pairs of operands: all of `special` with either sign against each other, then random bits, random near exponents, close values. */
function operands(seed: number, allowed: (word: number) => boolean): Uint32Array {
	const random = new Xorshift(new Uint8Array(Uint32Array.of(seed, 1, 2, 3).buffer));
	const words = new Uint32Array(count * 2);
	const signed = special.flatMap((word) => [word, (word | 0x80000000) >>> 0]).filter(allowed);
	let at = 0;
	for (const a of signed) for (const b of signed) words.set([a, b], 2 * at++);
	const draw = () => {
		for (;;) {
			const word = random.next() >>> 0;
			if (allowed(word)) return word;
		}
	};
	for (; at < count; at++) {
		const a = draw();
		// Exponents up to 31 apart, where rounding of sums is decided, or any; now and then the same magnitude.
		const kind = random.next() & 7;
		let b = draw();
		if (kind < 4) b = ((b & 0x807fffff) | ((((a >>> 23) & 255) ^ (random.next() & 31)) << 23)) >>> 0;
		if (kind === 7) b = (a ^ 0x80000000 ^ (random.next() & 3)) >>> 0;
		words.set([a, allowed(b) ? b : draw()], 2 * at);
	}
	return words;
}

async function compare(
	expression: string,
	inputs: Uint32Array,
	expected: (x: number, y: number) => number,
	raw = false,
): Promise<void> {
	const code = `${floatWgsl}
@group(0) @binding(0) var<storage, read> source: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let x = source[id.x].x;
  let y = source[id.x].y;
  result[id.x] = ${expression};
}`;
	const result = await runShader(open, code, inputs, count, groups);
	const wrong: string[] = [];
	for (let i = 0; i < count && wrong.length < 5; i++) {
		const [x, y] = [inputs[i * 2]!, inputs[i * 2 + 1]!];
		const want = raw ? expected(x, y) : expected(toFloat(x), toFloat(y));
		const same = Number.isNaN(want) ? Number.isNaN(toFloat(result[i]!)) : toBits(want) === result[i];
		if (!same) wrong.push(`${expression} of ${hex(x)}, ${hex(y)}: ${hex(result[i]!)} instead of ${hex(toBits(want))}`);
	}
	expect(wrong).toEqual([]);
}

const hex = (word: number): string => word.toString(16).padStart(8, "0");
const magnitude = (word: number): number => word & 0x7fffffff;
const number = (word: number): boolean => magnitude(word) <= 0x7f800000;
const finite = (word: number): boolean => magnitude(word) < 0x7f800000;

describe.skipIf(!hasDevice)("binary32 on integers, in a shader", { timeout: 300_000 }, () => {
	it("multiplies as Math.fround does", () => compare("f_mul(x, y)", operands(1, number), (x, y) => Math.fround(x * y)));

	it("adds as Math.fround does", () => compare("f_add(x, y)", operands(2, number), (x, y) => Math.fround(x + y)));

	it("subtracts as Math.fround does", () => compare("f_sub(x, y)", operands(3, number), (x, y) => Math.fround(x - y)));

	it("divides as Math.fround does", async () => {
		const inputs = operands(4, (word) => finite(word) && magnitude(word) > 0);
		await compare("f_div(x, y)", inputs, (x, y) => Math.fround(x / y));
	});

	it("divides by 8191 and 8191 by a block's largest", async () => {
		const inputs = operands(5, (word) => finite(word) && magnitude(word) >= 0x1f800000);
		await compare("f_div(x, 0x45fff800u)", inputs, (x) => Math.fround(x / 8191));
		await compare("f_div(0x45fff800u, x)", inputs, (x) => Math.fround(8191 / x));
	});

	it("converts integers", () =>
		compare(
			"f_from_int(i32(x))",
			operands(6, () => true),
			(x) => Math.fround(x | 0),
			true,
		));

	it("finds the nearest integer, ties to even", async () => {
		const small = (word: number) => magnitude(word) < 0x4a800000;
		const inputs = operands(7, small);
		for (let i = 0; i < inputs.length / 4; i++) inputs[i] = toBits((i - inputs.length / 8) / 4);
		await compare("f_from_int(nearest_int(x))", inputs, (x) => {
			const nearest = Math.fround(Math.fround(x + 12582912) - 12582912);
			return nearest === 0 ? 0 : nearest;
		});
	});

	it("computes exp32 and silu", async () => {
		const inputs = operands(8, finite);
		for (let i = 0; i < count; i++) inputs[i * 2] = i % 2 ? inputs[i * 2]! : toBits((i / count) * 200 - 100);
		await compare("exp32(x)", inputs, (x) => exp32(x));
		await compare("silu(x)", inputs, (x) => silu(x));
	});

	it("widens every binary16", async () => {
		const inputs = Uint32Array.from({ length: count * 2 }, (_, i) => (i >> 1) & 0xffff);
		await compare("widen_half(x)", inputs, (x) => f16ToF32(x), true);
	});
});
