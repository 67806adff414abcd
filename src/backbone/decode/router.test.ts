import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { exp64 } from "../../experts/exp64.ts";
import { packagePath } from "../../io/built.ts";
import { route, selectLargest } from "./router.ts";

const caseBytes = async (name: string) => {
	const bytes = await readFile(packagePath(`fixtures/reference/canonical-cases/${name}`));
	return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};

test("exp64() gives the bytes of the independent cases", async () => {
	const z = new Float64Array(await caseBytes("exp64.z.f64"));
	const y = Float64Array.from(z, exp64);
	expect(Buffer.from(y.buffer).equals(Buffer.from(await caseBytes("exp64.y.f64")))).toBe(true);
});

test("route() gives the weights of the independent cases, byte for byte", async () => {
	const logits = new Float32Array(await caseBytes("router.l.f32")); // 200 rows of the 8 chosen, best first
	const { weight, expert } = route(logits, 200, 8, 8);
	expect(Buffer.from(weight.buffer).equals(Buffer.from(await caseBytes("router.w.f32")))).toBe(true);
	expect([...expert.subarray(0, 8)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test("ties go to the lower id, and -0 ties with 0", () => {
	const { expert, weight } = route(Float32Array.of(-0, 1, 0, 1, 1), 1, 5, 4);
	expect([...expert]).toEqual([1, 3, 4, 0]);
	expect(weight[0]).toBe(weight[2]);
});

test("selectLargest() is a stable sort cut short, for any values", () => {
	const values = fc.array(fc.oneof(fc.constantFrom(-1, -0, 0, 1), fc.float({ noNaN: true })), {
		minLength: 1,
		maxLength: 40,
	});
	fc.assert(
		fc.property(values, fc.nat(39), (list, more) => {
			const k = 1 + (more % list.length);
			const logits = Float32Array.from(list);
			const chosen = new Uint16Array(k);
			selectLargest(logits, chosen);
			const order = [...logits.keys()].sort((a, b) =>
				logits[a]! < logits[b]! ? 1 : logits[a]! > logits[b]! ? -1 : a - b,
			);
			expect([...chosen]).toEqual(order.slice(0, k));
		}),
	);
});

test("the weights of every row are positive and add up to 1", () => {
	const row = fc.array(fc.float({ noNaN: true, min: -200, max: 200 }), { minLength: 8, maxLength: 8 });
	fc.assert(
		fc.property(fc.array(row, { minLength: 1, maxLength: 4 }), (rows) => {
			const { weight } = route(Float32Array.from(rows.flat()), rows.length, 8, 3);
			for (const [r] of rows.entries()) {
				const sum = weight.subarray(r * 3, r * 3 + 3).reduce((a, b) => a + b, 0);
				expect(Math.abs(sum - 1)).toBeLessThan(1e-6);
			}
		}),
	);
});
