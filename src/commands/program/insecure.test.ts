import { describe, expect, it } from "vitest";
import { requireSafeUrl } from "./insecure.ts";

describe("requireSafeUrl()", () => {
	it.each([
		"wss://gate.example",
		"https://gate.example",
		"ws://127.0.0.1:9",
		"http://localhost:9",
		"ws://[::1]:9",
		"ws://127.9.9.9",
	])("takes %s", (url) => expect(requireSafeUrl(url, false).href).toContain(url.split("//")[1]!));

	it.each(["ws://gate.example", "http://10.0.0.1", "ws://127.0.0.1.example", "ws://[::2]:9"])(
		"takes %s only when told to",
		(url) => {
			expect(() => requireSafeUrl(url, false)).toThrow(expect.objectContaining({ code: "usage" }));
			expect(requireSafeUrl(url, true)).toBeInstanceOf(URL);
		},
	);

	it.each(["gate.example", "", "ftp://gate.example", "file:///etc"])("never takes %j", (url) => {
		expect(() => requireSafeUrl(url, true)).toThrow(expect.objectContaining({ code: "usage" }));
	});
});
