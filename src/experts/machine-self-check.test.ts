import { expect, test } from "vitest";
import { systemClock } from "../io/clock.ts";
import { openCanonicalEngine } from "./canonical/canonical-engine.ts";
import { checkThisMachine, passSelfCheck } from "./machine-self-check.ts";
import { canonicalDigest } from "./self-check.ts";

const memoryBytes = 24 * 1024 ** 2;

test.each([1, 3])("this machine passes with %i threads, in a thread of its own", async (threads) => {
	const { digest, ms } = await checkThisMachine(threads);
	expect(Buffer.from(digest).toString("hex")).toBe(canonicalDigest);
	expect(ms).toBeGreaterThan(0);
});

test("one wrong bit of one exp32 is refused, with both digests", async () => {
	const engine = await openCanonicalEngine({ memoryBytes });
	const wrong = {
		load: engine.load.bind(engine),
		unload: engine.unload.bind(engine),
		compute: engine.compute.bind(engine),
		group: engine.group.bind(engine),
		async exponentials(values: Float32Array) {
			const right = await engine.exponentials(values);
			new Uint32Array(right.buffer)[1000]! ^= 1;
			return right;
		},
	};
	await expect(passSelfCheck(wrong, systemClock)).rejects.toMatchObject({
		code: "engine_failed",
		message: expect.stringContaining(canonicalDigest.slice(0, 16)),
		hint: expect.stringContaining("kvasir doctor"),
	});
	await engine.close();
});
