import { expect, it } from "vitest";
import { formatBytes, formatCount, formatCounted, formatMs } from "./format-amounts.ts";

it("amounts are written in the unit that fits", () => {
	expect([0, 1023, 1024, 9.0 * 2 ** 20, 3 * 2 ** 40].map(formatBytes)).toEqual([
		"0 B",
		"1023 B",
		"1.0 KiB",
		"9.0 MiB",
		"3.0 TiB",
	]);
	expect([0.0004, 0.64, 12.34, 999, 4560].map(formatMs)).toEqual(["0 us", "640 us", "12.3 ms", "999 ms", "4.56 s"]);
	expect([0, 999, 1000, 1277952].map(formatCount)).toEqual(["0", "999", "1,000", "1,277,952"]);
	expect([0, 1, 1024].map((count) => formatCounted(count, "expert"))).toEqual([
		"0 experts",
		"1 expert",
		"1,024 experts",
	]);
});
