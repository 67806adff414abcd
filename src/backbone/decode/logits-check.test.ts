import { expect, test } from "vitest";
import { logitsDigest, pinnedLogits } from "./logits-check.ts";

test("the logits have the bytes they have on every machine (scripts/self-check-everywhere.mjs compares them)", async () => {
	expect(await logitsDigest()).toBe(pinnedLogits);
});
