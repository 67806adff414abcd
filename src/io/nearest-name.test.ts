import { expect, it } from "vitest";
import { nearestName } from "./nearest-name.ts";

it.each([
	["tyni", "tiny"],
	["TINY", "tiny"],
	["serve-hob", "serve-hub"],
	["122", "122b"],
	["something else", null],
	["", null],
])("for %j the nearest of some names is %j", (given, nearest) => {
	expect(nearestName(given, ["tiny", "122b", "serve-hub", "serve-gateway"])).toBe(nearest);
});
