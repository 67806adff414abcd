import { describe, expect, it } from "vitest";
import { rangeOf } from "./slice-range.ts";

describe("rangeOf()", () => {
	it.each([
		[undefined, null],
		["bytes=0-9", { first: 0, last: 9 }],
		["bytes=90-", { first: 90, last: 99 }],
		["bytes=99-500", { first: 99, last: 99 }],
		["bytes=-5", { first: 95, last: 99 }],
		["bytes=-500", { first: 0, last: 99 }],
		["bytes=-0", "unsatisfiable"],
		["bytes=100-", "unsatisfiable"],
		["bytes=9-5", null],
		["bytes=-", null],
		["bytes=0-1,5-6", null],
		["items=0-1", null],
		["bytes=0-9999999999999999999", null],
	])("reads %s of 100 bytes", (header, expected) => expect(rangeOf(header, 100)).toEqual(expected));
});
