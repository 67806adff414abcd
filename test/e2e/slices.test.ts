import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startPart } from "../support/part-processes.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { backboneHome, doneOf, testSwarm } from "../support/test-swarm.ts";

const prompt = ["--prompt", "The capital of France is", "--tokens", "16"];
const remote = [...prompt, "--wait", "60", "--require-remote"];
const fetching = { hold: [], ownModel: false };

describe("workers without a model file", () => {
	it("join with one command, are told what to hold, fetch it over the gateway and serve the tokens of a local run", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home);
		const alone = await doneOf(await swarm.startBackbone(backboneHome(home), [...prompt, "--remote", "none"]));
		const backbone = await swarm.startBackbone(backboneHome(home), remote);
		const workers = await Promise.all([swarm.addWorker(fetching), swarm.addWorker(fetching)]);
		const together = await doneOf(backbone);
		expect(together.answers[0]).toMatchObject({
			tokens: alone.answers[0]!.tokens,
			logitsSha256: alone.answers[0]!.logitsSha256,
		});
		expect(together.remote).toMatchObject({ answered: together.remote.asked, fallback: 0 });
		// Whoever links first may have everything before the other is told anything.
		const held = workers.map(({ events }) =>
			events.all.flatMap((event) => (event.event === "holding" ? [Number(event.experts)] : [])),
		);
		for (const counts of held) expect(counts).toEqual([...counts].sort((a, b) => a - b));
		expect(Math.max(...held.flat())).toBeGreaterThan(0);
	});

	it("come back after a restart with what they fetched, and fetch again only what is bad", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home);
		const joinAgain = () => startPart(home, "fetching", ["join", swarm.gatewayUrl.replace("http", "ws")]);
		const backbone = await swarm.startBackbone(backboneHome(home), remote);
		const worker = await joinAgain();
		const first = await doneOf(backbone);
		await worker.stop();
		const slices = join(home, "fetching", "slices");
		const before = await filesOf(slices);
		expect(before.size).toBeGreaterThan(10);
		const [damaged] = before.keys();
		await writeFile(join(slices, damaged!), "damaged");
		const later = await swarm.startBackbone(backboneHome(home), remote);
		await joinAgain();
		const second = await doneOf(later);
		expect(second.answers[0]!.tokens).toEqual(first.answers[0]!.tokens);
		const after = await filesOf(slices);
		expect([...after.keys()].sort()).toEqual([...before.keys()].sort());
		expect([...after].filter(([name, file]) => before.get(name) !== file).map(([name]) => name)).toEqual([damaged]);
	});
});

/** Which file each slice is: a deleted and fetched one is another, though its inode may be used again. */
async function filesOf(folder: string): Promise<Map<string, string>> {
	const names = await readdir(folder);
	const file = async (name: string) => {
		const { ino, birthtimeMs, size } = await stat(join(folder, name));
		return [name, `${ino} ${birthtimeMs} ${size}`] as const;
	};
	return new Map(await Promise.all(names.map(file)));
}
