import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { closeCodes, messageKinds, refuseCodes } from "./messages.ts";

const doc = readFileSync(new URL("../../docs/protocol.md", import.meta.url), "utf8");

describe("docs/protocol.md", () => {
	it("lists every kind under its number", () => {
		const listed = new Map<string, number>();
		for (const [, numbers, names] of doc.matchAll(/^\| ([\d, ]+) \| ([a-z, ]+) \| (?:W|B|both) \|/gm)) {
			const kinds = numbers!.split(",").map(Number);
			for (const [i, name] of names!.split(",").entries()) listed.set(name.trim(), kinds[i]!);
		}
		expect(Object.fromEntries(listed)).toEqual(messageKinds);
	});

	it("lists every refuse code and every close code of its own", () => {
		for (const code of refuseCodes) expect(doc).toContain(`\`${code}\``);
		const ordinary: number[] = [closeCodes.normal, closeCodes.goingAway, closeCodes.lost];
		const listed = [...doc.matchAll(/^\| (\d{4}) \| /gm)].map(([, code]) => Number(code));
		expect(listed).toEqual(Object.values(closeCodes).filter((code) => !ordinary.includes(code)));
	});
});
