import { join } from "node:path";
import { expect, it } from "vitest";
import { failpoints } from "../../src/io/failpoint.ts";
import { CrashSwarm } from "../crash/crash-swarm.ts";
import { temporaryHome } from "../support/temporary-home.ts";

it("a process killed at any point loses nothing and credits nothing twice", { timeout: 300_000 }, async () => {
	const home = await temporaryHome();
	await using swarm = await CrashSwarm.start(home, { hub: join(home, "hub.db"), gateway: join(home, "gateway.db") });
	let before = await swarm.settle();
	for (const point of failpoints) {
		await swarm.crashAt(point);
		const after = await swarm.settle();
		expect(after.nano).toBeGreaterThanOrEqual(before.nano);
		before = after;
	}
	expect(before.pairs).toBeGreaterThan(BigInt(failpoints.length));
});
