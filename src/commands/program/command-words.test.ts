import { describe, expect, it } from "vitest";
import { commandWords } from "./command-words.ts";

const paths = ["demo", "wallet create", "gateway invite list", "gateway ban"];

describe("commandWords()", () => {
	it.each([
		["demo --tokens 3", "demo", "--tokens 3"],
		["--json demo", "demo", "--json"],
		["--home wallet wallet create --mnemonic", "wallet create", "--home wallet --mnemonic"],
		["wallet --quiet create", "wallet create", "--quiet"],
		["--home=x gateway --log-level debug invite list demo", "gateway invite list", "--home=x --log-level debug demo"],
		["gateway invite", "gateway invite", ""],
		["gateway nonsense", "gateway", "nonsense"],
		["nonsense demo", "", "nonsense demo"],
		["--unknown demo", "", "--unknown demo"],
		["--home", "", "--home"],
		["demo wallet create", "demo", "wallet create"],
	])("reads %j", (line, words, rest) => {
		const read = commandWords(line.split(" "), paths);
		expect([read.words.join(" "), read.rest.join(" ")]).toEqual([words, rest]);
	});
});
