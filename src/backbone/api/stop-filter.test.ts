import fc from "fast-check";
import { expect, test } from "vitest";
import { StopFilter } from "./stop-filter.ts";

test("StopFilter lets out the text before the first stop sequence, however it was cut in pieces", () => {
	const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 12 });
	const stop = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 });
	fc.assert(
		fc.property(fc.array(letters, { maxLength: 8 }), fc.array(stop, { maxLength: 3 }), (pieces, stops) => {
			const filter = new StopFilter(stops);
			let out = "";
			for (const piece of pieces) out += filter.push(piece);
			out += filter.end();
			const text = pieces.join("");
			const first = Math.min(...stops.map((each) => text.indexOf(each)).filter((at) => at >= 0));
			// Of overlapping stop sequences the one that is complete first ends the text.
			if (first === Number.POSITIVE_INFINITY) expect(out).toBe(text);
			else expect(stops.some((each) => text.startsWith(out + each))).toBe(true);
			expect(filter.stopped).toBe(first !== Number.POSITIVE_INFINITY);
			expect(stops.some((each) => out.includes(each))).toBe(false);
		}),
	);
});
