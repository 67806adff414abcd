import { expect, it } from "vitest";
import { closeCodes } from "../protocol/messages.ts";
import { byeEnding, endingOf, saidGoodbye } from "./link-endings.ts";

/** A handshake that fails is told as an error of its own. */
const handshakeOnly = new Set<number>([closeCodes.auth, closeCodes.handshakeTimeout, closeCodes.version]);

it.each(Object.entries(closeCodes).filter(([, code]) => !handshakeOnly.has(code)))(
	"a link that ends as %s (%i) is told with its meaning",
	(_, closeCode) => {
		const { message, code } = endingOf(closeCode, "why");
		expect(message).toMatch(new RegExp(`^the connection ended: [a-z ,]+ \\(${closeCode} why\\)$`));
		expect(message).not.toContain("does not know");
		expect(code).toMatch(/^[a-z_]+$/);
	},
);

it("a cut and a dead peer point to the measurement of the path; an unknown code is told as such", () => {
	for (const code of [closeCodes.lost, closeCodes.deadPeer]) expect(endingOf(code, "").hint).toContain("--idle");
	expect(endingOf(4999, "")).toMatchObject({ code: "closed", message: expect.stringContaining("(4999)") });
});

it.each([
	["key_in_use", "key_in_use", 5, "--home"],
	["taken_over", "key_in_use", 5, "--home"],
	["self_check", "version", 6, "update"],
	["engine_class", "not_admitted", 5, "--accept"],
	["constructor", "closed", 4, "operator"],
])("a bye %s for good is %s, exit %i", (bye, code, exitCode, hint) => {
	expect(saidGoodbye(bye, "so it is")).toMatchObject({ code, exitCode, hint: expect.stringContaining(hint) });
});

it("a bye that lets a worker come back says what to do about a key in use", () => {
	expect(byeEnding("key_in_use", "Another instance works").hint).toContain("--home");
	expect(byeEnding("draining", "bye").hint).toBeNull();
	expect(byeEnding("done", "").message).toBe("the backbone said goodbye");
});
