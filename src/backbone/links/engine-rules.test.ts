import { expect, test } from "vitest";
import { canonicalDigest } from "../../experts/self-check.ts";
import { refuseEngine } from "./engine-rules.ts";

const digest = Uint8Array.from(Buffer.from(canonicalDigest, "hex"));
const none = new Uint8Array(0);
const other = digest.map((byte) => byte ^ 1);

test.each([
	["canonical-1 with the digest", "canonical-1", digest, null, null],
	["canonical-1 with another digest", "canonical-1", other, null, "self_check"],
	["canonical-1 without one", "canonical-1", none, null, "self_check"],
	["any class, where any may join", "ort:1.30.0:cpu:EPYC", none, null, null],
	["a class by its start", "ort:1.30.0:cpu:EPYC", none, ["canonical-1", "ort:"], null],
	["a class that is not accepted", "f32", none, ["canonical-1", "ort:"], "engine_class"],
	["a class whose name only begins like one", "canonical-10", none, ["canonical-1"], "engine_class"],
	["an accepted class with another digest", "canonical-1", other, ["canonical-1"], "self_check"],
])("%s", (_, name, selfCheck, accepted, code) => {
	const refusal = refuseEngine({ class: name, selfCheck }, accepted);
	expect(refusal?.code ?? null).toBe(code);
	if (refusal) expect(Buffer.byteLength(refusal.text)).toBeLessThanOrEqual(256);
});
