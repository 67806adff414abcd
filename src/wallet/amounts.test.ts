import fc from "fast-check";
import { expect, it } from "vitest";
import { kvrText, parseKvr, shortKvr, unitsText } from "./amounts.ts";

it("shows the reference example as the ledger's document does", () => {
	expect(unitsText(1_277_952n)).toBe("1.277952");
	expect(kvrText(8_945_664n)).toBe("0.008945664");
	expect(shortKvr(8_945_664n)).toBe("0.00895");
});

it.each([
	[0n, "0", "0"],
	[1n, "0.000000001", "<0.00001"],
	[4_999n, "0.000004999", "<0.00001"],
	[5_000n, "0.000005", "0.00001"],
	[1_000_000_000n, "1", "1"],
	[1_500_000_000n, "1.5", "1.5"],
	[9_007_199_254_740_993_000n, "9007199254.740993", "9007199254.74099"],
])("%s nano is %s KVR, on a screen %s", (nano, exact, short) => {
	expect(kvrText(nano)).toBe(exact);
	expect(shortKvr(nano)).toBe(short);
});

it("parseKvr() reads back every amount that kvrText() wrote", () => {
	fc.assert(
		fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), (nano) => {
			expect(parseKvr(kvrText(nano))).toBe(nano);
		}),
	);
});

it.each(["", ".5", "1.", "1e3", "-1", "0.0000000001", "1,5", "0x10", "12345678901"])(
	"parseKvr() refuses %j",
	(text) => {
		expect(() => parseKvr(text)).toThrow(expect.objectContaining({ code: "usage" }));
	},
);
