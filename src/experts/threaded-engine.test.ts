import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { openThreadedEngine } from "./threaded-engine.ts";

test("an engine that loads onnxruntime in its thread switches telemetry off in the real environment", async () => {
	delete process.env.ORT_DISABLE_TELEMETRY;
	const engine = await openThreadedEngine({ engine: "f32", hidden: 32, threads: 1, memoryBytes: 2 ** 20 });
	// What a child inherits is what getenv() of this process sees.
	expect(execFileSync("printenv", ["ORT_DISABLE_TELEMETRY"], { encoding: "utf8" })).toBe("1\n");
	await engine.close();
});
