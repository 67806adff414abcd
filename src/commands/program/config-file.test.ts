import { describe, expect, it } from "vitest";
import { loadAll } from "../catalog.ts";
import { parseConfig } from "./config-file.ts";

const parse = async (source: string) => parseConfig(source, "kvasir.toml", await loadAll());

describe("parseConfig()", () => {
	it("reads global settings and sections as texts", async () => {
		const file = await parse('log-level = "info"\n[config]\norigin = true\n');
		expect(file).toMatchObject({ "": { "log-level": ["info"] }, config: { origin: ["true"] } });
	});

	it.each([
		['log-levle = "info"', 'Did you mean "log-level"?'],
		["[confg]\norigin = true", 'Did you mean "config"?'],
		["[config]\norigni = true", 'Did you mean "origin"?'],
		["[config]\nzzzzzzzzzz = true", "Known keys: origin"],
		['home = "elsewhere"', "Known keys"],
	])("refuses %j naming what is known", async (source, hint) => {
		await expect(parse(source)).rejects.toMatchObject({ code: "config", hint: expect.stringContaining(hint) });
	});

	it.each(["[config", "origin = ", "[config]\norigin = { a = 1 }"])("refuses %j", async (source) => {
		await expect(parse(source)).rejects.toMatchObject({ code: "config" });
	});
});
