import { describe, expect, it } from "vitest";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { keyPairFromSeed } from "../io/crypto.ts";
import {
	authorizationOfSubprotocols,
	authorizationSubprotocol,
	checkAuthorization,
	signAuthorization,
} from "./authorization.ts";
import { createNonceCache } from "./nonce-cache.ts";
import { checkRequest, signRequest } from "./request-authorization.ts";

const identity = keyPairFromSeed(new Uint8Array(32).fill(7));
const subject = { label: "kvasir/1 relay", host: "gate.example", model: "tiny" } as const;

function setUp() {
	const clock = fakeClock();
	return { clock, random: seededRandom(1), nonces: createNonceCache(clock), identity };
}

describe("authorization", () => {
	it("proves the key of an honest token", () => {
		const parts = setUp();
		const check = checkAuthorization(signAuthorization(subject, parts), subject, parts);
		expect(check).toEqual({ ok: true, key: identity.publicKey });
	});

	it("refuses a token a second time", () => {
		const parts = setUp();
		const token = signAuthorization(subject, parts);
		expect(checkAuthorization(token, subject, parts).ok).toBe(true);
		expect(checkAuthorization(token, subject, parts)).toEqual({ ok: false, reason: "replay" });
	});

	it.each([
		["label", { ...subject, label: "kvasir/1 park" as const }],
		["host", { ...subject, host: "evil.example" }],
		["model", { ...subject, model: "" }],
	])("refuses a token signed for another %s", (_, other) => {
		const parts = setUp();
		expect(checkAuthorization(signAuthorization(other, parts), subject, parts)).toEqual({
			ok: false,
			reason: "signature",
		});
	});

	it("accepts 60 s of skew either way and no more", async () => {
		for (const [offsetSeconds, ok] of [
			[60, true],
			[-60, true],
			[61, false],
			[-61, false],
		] as const) {
			const parts = setUp();
			const check = checkAuthorization(signAuthorization(subject, { ...parts, offsetSeconds }), subject, parts);
			expect(check.ok).toBe(ok);
			if (!check.ok) expect(check.reason).toBe("skew");
		}
	});

	it("refuses every token with one changed character, and never throws", () => {
		const parts = setUp();
		const token = signAuthorization(subject, parts);
		// The last base64url character of 64 bytes carries two unused bits, so it may change without meaning.
		for (let i = 0; i < token.length - 1; i++) {
			const changed = token.slice(0, i) + (token[i] === "2" ? "3" : "2") + token.slice(i + 1);
			expect(checkAuthorization(changed, subject, parts).ok, `character ${i}`).toBe(false);
		}
		expect(checkAuthorization(undefined, subject, parts)).toEqual({ ok: false, reason: "missing" });
	});

	it("travels as a subprotocol where a browser cannot set headers", () => {
		const token = signAuthorization(subject, setUp());
		const list = `kvasir.v1, ${authorizationSubprotocol(token)}`;
		expect(authorizationOfSubprotocols(list)).toBe(token);
		expect(authorizationOfSubprotocols("kvasir.v1")).toBeUndefined();
	});
});

describe("request authorization", () => {
	const request = { method: "POST", path: "/receipts?x=1", body: new Uint8Array([1, 2]), facts: ["peer"] };
	const secret = new Uint8Array(32).fill(3);

	it("proves a key or the secret, once", () => {
		const parts = { ...setUp(), secret };
		const byKey = signRequest(request, { identity }, parts);
		expect(checkRequest(byKey, request, parts)).toEqual({ ok: true, by: "key", key: identity.publicKey });
		expect(checkRequest(byKey, request, parts)).toEqual({ ok: false, reason: "replay" });
		const bySecret = signRequest(request, { secret }, parts);
		expect(checkRequest(bySecret, request, parts)).toEqual({ ok: true, by: "secret" });
	});

	it.each([
		["method", { ...request, method: "GET" }],
		["path", { ...request, path: "/receipts?x=2" }],
		["body", { ...request, body: new Uint8Array([1, 3]) }],
		["facts", { ...request, facts: ["other"] }],
	])("refuses when the %s changed on the way", (_, changed) => {
		const parts = { ...setUp(), secret };
		for (const signer of [{ identity }, { secret }]) {
			expect(checkRequest(signRequest(request, signer, parts), changed, parts)).toEqual({
				ok: false,
				reason: "signature",
			});
		}
	});

	it("refuses an HMAC where no secret is known, and an old request", async () => {
		const parts = setUp();
		expect(checkRequest(signRequest(request, { secret }, parts), request, parts)).toEqual({
			ok: false,
			reason: "signature",
		});
		const old = signRequest(request, { identity }, parts);
		await parts.clock.advance(61_000);
		expect(checkRequest(old, request, parts)).toEqual({ ok: false, reason: "skew" });
	});
});

describe("createNonceCache", () => {
	it("forgets after 120 s, and stays within its bound", async () => {
		const clock = fakeClock();
		const cache = createNonceCache(clock, { max: 4 });
		expect(cache.add("a")).toBe(true);
		await clock.advance(119_999);
		expect(cache.add("a")).toBe(false);
		await clock.advance(1);
		expect(cache.add("a")).toBe(true);
		for (const nonce of ["b", "c", "d", "e"]) cache.add(nonce);
		expect(cache.size).toBe(4);
	});
});
