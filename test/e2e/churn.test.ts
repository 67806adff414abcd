import { describe, expect, it } from "vitest";
import type { Child } from "../../src/swarm/child.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { backboneHome, testSwarm } from "../support/test-swarm.ts";

const prompt = ["--prompt", "The capital of France is", "--tokens", "64"];
const whole = { hold: ["all:all"] };

interface Done {
	answers: { tokens: number[]; finish: string; logitsSha256: string }[];
	remote: { asked: number; answered: number; fallback: number; failures: Record<string, number> };
}

async function done(backbone: Child): Promise<Done> {
	const event = await backbone.events.waitFor(({ event }) => event === "done", 60_000);
	await backbone.ended;
	return event as unknown as Done;
}

async function afterTokens(backbone: Child, count: number): Promise<void> {
	await backbone.events.waitFor(({ event, index }) => event === "token" && Number(index) >= count, 60_000);
}

describe("a worker that is killed in the middle of a decode", () => {
	it("costs time but no token: the other holder and the local copy answer", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home, { workers: [{ hold: ["all:0-7"] }, { hold: ["all:8-15"] }] });
		const alone = await done(await swarm.startBackbone(backboneHome(home), [...prompt, "--remote", "none"]));
		const backbone = await swarm.startBackbone(backboneHome(home), [...prompt, "--wait", "30"]);
		await afterTokens(backbone, 10);
		await swarm.workers[0]!.kill();
		const { answers, remote } = await done(backbone);
		expect(answers[0]).toMatchObject({
			finish: "length",
			tokens: alone.answers[0]!.tokens,
			logitsSha256: alone.answers[0]!.logitsSha256,
		});
		const left = backbone.events.all.find(({ event }) => event === "left");
		expect(left?.worker).toBe(swarm.workers[0]!.listening.worker);
		expect(remote.fallback).toBeGreaterThan(0);
		expect(remote.answered + remote.fallback).toBe(remote.asked);
		expect(Object.values(remote.failures).reduce((sum, pairs) => sum + pairs, 0)).toBeGreaterThanOrEqual(
			remote.fallback,
		);
	});

	it("is replaced by another holder of the same experts", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home, { workers: [whole, whole] });
		const backbone = await swarm.startBackbone(backboneHome(home), [...prompt, "--wait", "30", "--require-remote"]);
		await afterTokens(backbone, 10);
		await swarm.workers[0]!.kill();
		const { answers, remote } = await done(backbone);
		expect(answers[0]).toMatchObject({ finish: "length" });
		expect(remote).toMatchObject({ answered: remote.asked, fallback: 0 });
	});

	it("ends the decode with remote_required where nobody else holds its experts and --require-remote is said", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home, { workers: [whole] });
		const backbone = await swarm.startBackbone(backboneHome(home), [...prompt, "--wait", "30", "--require-remote"]);
		await afterTokens(backbone, 10);
		await swarm.workers[0]!.kill();
		await expect(done(backbone)).rejects.toMatchObject({ code: "remote_required" });
		expect(await backbone.ended).toBe(1);
	});

	it("comes back under its key and serves again", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home, { workers: [whole] });
		const first = await done(await swarm.startBackbone(backboneHome(home), [...prompt, "--wait", "30"]));
		// The backbone went away and came back: the worker dials again by itself.
		const second = await done(
			await swarm.startBackbone(backboneHome(home), [...prompt, "--wait", "30", "--require-remote"]),
		);
		expect(second.answers[0]!.tokens).toEqual(first.answers[0]!.tokens);
		expect(second.remote.fallback).toBe(0);
	});
});
