import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../test/support/long.ts";
import { testKey } from "../../test/support/splice-swarm.ts";
import { addressOf } from "../io/base58.ts";
import { isModelName, readParkTarget, readWorkerTarget } from "./targets.ts";

const key = addressOf(testKey(1).publicKey);

describe("readWorkerTarget()", () => {
	it("rebuilds the target from its checked parts and drops everything else", () => {
		expect(readWorkerTarget(`/v1/relay?x=1&backbone=${key}&model=tiny&token=secret`)).toEqual({
			kind: "relay",
			model: "tiny",
			backbone: key,
			target: `/v1/relay?model=tiny&backbone=${key}`,
		});
		expect(readWorkerTarget("/v1/relay")).toMatchObject({ model: "", target: "/v1/relay" });
		expect(readWorkerTarget("/v1/models/a.b-c_1/manifest?model=other")).toMatchObject({
			kind: "manifest",
			model: "a.b-c_1",
			target: "/v1/models/a.b-c_1/manifest",
		});
	});

	it("never throws, and what it lets through is plain text of its own making", () => {
		const piece = fc.constantFrom(
			"/v1/",
			"relay",
			"slices/",
			"models/",
			"manifest",
			"?",
			"&",
			"model=",
			"a",
			"%2e",
			"..",
			"\r\n",
			" ",
		);
		fc.assert(
			fc.property(
				fc.oneof(
					fc.string(),
					fc.array(piece, { maxLength: 12 }).map((all) => all.join("")),
				),
				(url) => {
					const target = readWorkerTarget(url);
					if ("reason" in target) return;
					expect(target.target).toMatch(
						/^\/v1\/[A-Za-z0-9._/-]+(\?(model|backbone)=[A-Za-z0-9._-]+(&backbone=[A-Za-z0-9]+)?)?$/,
					);
					expect(target.model === "" || isModelName(target.model)).toBe(true);
				},
			),
			{ numRuns: runs(2_000, 100_000) },
		);
	});
});

describe("readParkTarget()", () => {
	it("needs one model's name", () => {
		expect(readParkTarget("/backbone?model=tiny")).toBe("tiny");
		for (const url of [
			"/backbone",
			"/backbone?model=",
			"/backbone?model=a&model=b",
			"/v1/relay?model=a",
			"/backbone?model=a/b",
		]) {
			expect(readParkTarget(url)).toBeNull();
		}
	});
});
