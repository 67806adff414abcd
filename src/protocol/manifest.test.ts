import { describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../io/crypto.ts";
import { type Manifest, manifestDigest, manifestText, openManifest, parseManifest, signManifest } from "./manifest.ts";

const identity = keyPairFromSeed(new Uint8Array(32).fill(4));
const manifest: Manifest = {
	version: 1,
	name: "tiny",
	modelId: "ab".repeat(32),
	experts: 2,
	hidden: 8,
	expertWidth: 4,
	layers: [{ types: ["Q4_K", "Q4_K", "Q6_K"], bytes: [3, 3, 4], slices: ["01".repeat(32), "02".repeat(32)] }],
};
const text = manifestText(manifest);

describe("a manifest", () => {
	it("comes back from its two lines with the key that signed it", () => {
		const opened = openManifest(signManifest(text, identity));
		expect(opened.manifest).toEqual(manifest);
		expect(opened.key).toEqual(identity.publicKey);
		expect(opened.digest).toEqual(manifestDigest(text));
	});

	it("is not believed once a digit of a slice, or of the signature, has changed", () => {
		const signed = signManifest(text, identity);
		expect(() => openManifest(signed.replace("0101", "0111"))).toThrow("its signature does not fit its key");
		const other = signManifest(text, keyPairFromSeed(new Uint8Array(32).fill(5))).split("\n")[1]!;
		const key = JSON.parse(signed.split("\n")[1]!).key;
		const forged = JSON.stringify({ ...JSON.parse(other), key });
		expect(() => openManifest(`${text}\n${forged}\n`)).toThrow("its signature does not fit its key");
	});

	it.each([
		["", "not what a backbone writes"],
		["{}", "not what a backbone writes"],
		[manifestText({ ...manifest, experts: 3 }), "does not list every expert"],
		[manifestText({ ...manifest, layers: [] }), "not what a backbone writes"],
		[text.replace('"version":1', '"version":1,"more":1'), "not what a backbone writes"],
	])("%# is refused as malformed", (wrong, state) => {
		expect(() => parseManifest(wrong)).toThrow(state);
	});

	it("is refused unsigned, and with something behind it", () => {
		expect(() => openManifest(text)).toThrow("it is not signed");
		expect(() => openManifest(`${signManifest(text, identity)}more`)).toThrow("more than two lines");
	});
});
