import { expect, it } from "vitest";
import { temporaryHome } from "../support/temporary-home.ts";
import { backboneHome, testSwarm } from "../support/test-swarm.ts";

const worker = { hold: ["all:all"], args: ["--engine", "f32"] };
const ask = ["--prompt", "The capital", "--tokens", "2", "--prefill", "remote"];

it("a backbone refuses an engine of another class than its own, and the worker says what to do", async () => {
	const home = await temporaryHome();
	const swarm = await testSwarm(home, { workers: [worker] });
	const backbone = await swarm.startBackbone(backboneHome(home), [...ask, "--wait", "30"]);
	const refused = await backbone.events.waitFor(({ event }) => event === "refused", 60_000);
	expect(refused).toMatchObject({ reason: "engine_class", worker: swarm.workers[0]!.listening.worker });
	await expect(swarm.failure).rejects.toMatchObject({
		code: "not_admitted",
		message: "Cannot serve: the engine f32 is not accepted here, only canonical-1",
		hint: expect.stringContaining("--engine canonical"),
	});
	expect(await swarm.workers[0]!.ended).toBe(5);
});

it("--accept takes it", async () => {
	const home = await temporaryHome();
	const swarm = await testSwarm(home, { workers: [worker] });
	const words = [...ask, "--wait", "60", "--require-remote", "--accept", "f32"];
	const backbone = await swarm.startBackbone(backboneHome(home), words);
	const done = await backbone.events.waitFor(({ event }) => event === "done", 90_000);
	expect(done.remote).toMatchObject({ fallback: 0 });
});
