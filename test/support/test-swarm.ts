import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { addressOf } from "../../src/io/base58.ts";
import { systemClock } from "../../src/io/clock.ts";
import type { Child } from "../../src/swarm/child.ts";
import { type Swarm, type SwarmPlan, startSwarm } from "../../src/swarm/swarm.ts";
import { loadNodeKey } from "../../src/wallet/node-key.ts";
import { cleanEnv, cliPath } from "./run-cli.ts";

/** The folder of the backbone that a test swarm's hub lists. */
export const backboneHome = (home: string) => join(home, "backbone");

/** Starts a swarm of the built command line in `home`; it is stopped when the test is over. */
export async function testSwarm(home: string, plan: Partial<SwarmPlan> = {}): Promise<Swarm> {
	const backbone = addressOf((await loadNodeKey(backboneHome(home))).publicKey);
	const swarm = await startSwarm({
		execPath: process.execPath,
		cliPath,
		env: cleanEnv(),
		clock: systemClock,
		home,
		model: "tiny",
		backbones: [backbone],
		workers: [],
		...plan,
	});
	onTestFinished(() => swarm.stop());
	return swarm;
}

/** Files of a home whose names say that something was left half done. */
export async function draftsIn(home: string): Promise<string[]> {
	return (await readdir(home, { recursive: true })).filter((name) => /\.(new|tmp|pid)$/.test(name));
}

/** What `backbone dispatch --prompt` says at its end. */
export interface Done {
	readonly answers: readonly { text: string; tokens: number[]; finish: string; logitsSha256: string }[];
	readonly remote: {
		asked: number;
		answered: number;
		fallback: number;
		retried: number;
		failures: Record<string, number>;
	};
}

/** Waits for a backbone's end. */
export async function doneOf(backbone: Child, deadlineMs = 60_000): Promise<Done> {
	const event = await backbone.events.waitFor(({ event }) => event === "done", deadlineMs);
	await backbone.ended;
	return event as unknown as Done;
}
