import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { KvasirError } from "../errors.ts";
import { systemClock } from "../io/clock.ts";
import { writePrivateFile } from "../io/files.ts";
import { runChecks } from "./check.ts";
import { homeCheck, memoryCheck, nodeCheck } from "./machine-checks.ts";

const parts = { clock: systemClock, signal: new AbortController().signal };
const run = (...checks: Parameters<typeof runChecks>[0]) => runChecks(checks, parts);

describe("runChecks()", () => {
	it("goes on after a check that throws, and keeps its hint", async () => {
		const broken = async () => {
			throw new KvasirError("file_missing", "Cannot open x: no such file", { hint: "Look elsewhere" });
		};
		const results = await run(
			{ name: "a", run: broken },
			{ name: "b", run: async () => ({ state: "ok", found: "b" }) },
		);
		expect(results).toMatchObject([
			{ name: "a", state: "failed", found: "Cannot open x: no such file", hint: "Look elsewhere" },
			{ name: "b", state: "ok" },
		]);
	});

	it("gives up on a check that hangs", async () => {
		const clock = { ...systemClock, after: (_ms: number, fn: () => void) => systemClock.after(5, fn) };
		const [result] = await runChecks([{ name: "a", run: () => new Promise(() => {}) }], { ...parts, clock });
		expect(result).toMatchObject({ state: "failed", found: "no answer in 30 s" });
	});
});

describe("machine checks", () => {
	it("refuse an old Node and take this one", async () => {
		expect(await run(nodeCheck("v18.20.0"), nodeCheck("v20.18.0"), nodeCheck(process.version))).toMatchObject([
			{ state: "failed" },
			{ state: "failed" },
			{ state: "ok", found: expect.stringContaining("SIMD") },
		]);
	});

	it("find keys that others can read", async () => {
		const home = await temporaryHome();
		await writePrivateFile(join(home, "node.key"), "key");
		expect(await run(homeCheck(home, "linux"))).toMatchObject([{ state: "ok" }]);
		await chmod(join(home, "node.key"), 0o644);
		expect(await run(homeCheck(home, "linux"))).toMatchObject([
			{ state: "failed", found: "node.key can be read by others", hint: `chmod 600 ${join(home, "node.key")}` },
		]);
	});

	it("warn when memory is short", async () => {
		expect(await run(memoryCheck(2 ** 32), memoryCheck(2 ** 20))).toMatchObject([
			{ state: "ok" },
			{ state: "warning" },
		]);
	});
});
