import fc from "fast-check";
import { expect, it } from "vitest";
import { creditOf, defaultPolicy, servedBytesOf } from "./units.ts";

it("the reference example: 13 positions x 8 experts x 3072 x 4 bytes are 0.008945664 KVR", () => {
	const bytes = servedBytesOf(13n * 8n, 3072);
	expect(bytes).toBe(1_277_952n);
	expect(creditOf(bytes, defaultPolicy.nanoPerMillionBytes, 0n)).toEqual({ nano: 8_945_664n, remainder: 0n });
});

it("creditOf() sums to the same amount over any split of the same work, at any rate", () => {
	const parts = fc.array(fc.bigInt({ min: 0n, max: 10n ** 13n }), { minLength: 1, maxLength: 40 });
	fc.assert(
		fc.property(parts, fc.bigInt({ min: 0n, max: 10n ** 10n }), (bytes, rate) => {
			let remainder = 0n;
			let nano = 0n;
			for (const part of bytes) {
				const credit = creditOf(part, rate, remainder);
				expect(credit.remainder >= 0n && credit.remainder < 1_000_000n).toBe(true);
				nano += credit.nano;
				remainder = credit.remainder;
			}
			const whole = bytes.reduce((sum, part) => sum + part, 0n);
			expect({ nano, remainder }).toEqual(creditOf(whole, rate, 0n));
		}),
	);
});
