import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { memoryHost } from "../../../test/support/memory-host.ts";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { type ErrorCode, exitCodes, KvasirError } from "../../errors.ts";
import { isTerminal, printError, toJson, usesColour } from "./output.ts";

describe("output", () => {
	it("prints an error as an envelope, or as two lines on stderr, and gives its exit code", () => {
		const error = new KvasirError("key_changed", "Cannot join: the backbone's key changed", {
			hint: "Ask its operator",
		});
		const json = memoryHost([]);
		expect(printError(json, error, { json: true, stack: false })).toBe(5);
		expect(JSON.parse(json.out())).toEqual({
			ok: false,
			error: { code: "key_changed", message: "Cannot join: the backbone's key changed", hint: "Ask its operator" },
		});
		const text = memoryHost([]);
		printError(text, error, { json: false, stack: false });
		expect(text.out()).toBe("");
		expect(text.err()).toBe("Cannot join: the backbone's key changed [key_changed]\n  Ask its operator\n");
	});

	it("calls anything else a bug of ours", () => {
		const host = memoryHost([]);
		expect(printError(host, new TypeError("x is not a function"), { json: true, stack: false })).toBe(1);
		expect(JSON.parse(host.out()).error.code).toBe("internal");
	});

	it("always says what to try next, whatever the code", () => {
		for (const code of Object.keys(exitCodes) as ErrorCode[]) {
			const json = memoryHost([]);
			printError(json, new KvasirError(code, "Cannot go on: it is over"), { json: true, stack: false });
			expect(JSON.parse(json.out()).error.hint, code).toMatch(/\w+ \w+/);
			const text = memoryHost([]);
			printError(text, new KvasirError(code, "Cannot go on: it is over"), { json: false, stack: false });
			expect(text.err().trimEnd().split("\n"), code).toHaveLength(2);
		}
	});

	it("calls what the system refuses by its name, not a bug of ours", async () => {
		const thrown = await writeFile(join(await temporaryHome(), "missing", "report.xml"), "").catch((error) => error);
		const host = memoryHost([]);
		expect(printError(host, thrown, { json: true, stack: false })).toBe(8);
		expect(JSON.parse(host.out()).error).toMatchObject({ code: "file_missing", hint: "Check the path" });
	});

	it("writes bigints as strings and bytes as hex", () => {
		expect(toJson({ nano: 8945664n, key: Uint8Array.of(1, 255), row: Float32Array.of(0.5) })).toBe(
			'{"nano":"8945664","key":"01ff","row":[0.5]}',
		);
	});

	it.each([
		[{}, true, true],
		[{}, false, false],
		[{ NO_COLOR: "1" }, true, false],
		[{ NO_COLOR: "1", FORCE_COLOR: "1" }, true, false],
		[{ FORCE_COLOR: "1" }, false, true],
		[{ FORCE_COLOR: "0" }, true, false],
		[{ CI: "true" }, true, false],
		[{ TERM: "dumb" }, true, false],
	])("with %j and a terminal: %s, colour is %s", (env, isTTY, colour) => {
		expect(usesColour(env, { isTTY })).toBe(colour);
		if (!("FORCE_COLOR" in env) && !("NO_COLOR" in env)) expect(isTerminal(env, { isTTY })).toBe(colour);
	});
});
