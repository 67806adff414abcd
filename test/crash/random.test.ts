import { afterAll, describe, expect, it } from "vitest";
import { failpoints } from "../../src/io/failpoint.ts";
import { databasesUnderTest } from "../support/databases.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { CrashSwarm } from "./crash-swarm.ts";

// npm run test:crash: every point and many random ones, on both databases. KVASIR_TEST_CRASHES, KVASIR_TEST_SEED: how many, from where.

const crashes = Number(process.env.KVASIR_TEST_CRASHES || 500);
const seed = Number(process.env.KVASIR_TEST_SEED || Date.now() % 1_000_000);
const roles = ["hub", "gateway", "backbone", "worker"] as const;

/** Such a run takes most of an hour. */
const say = (text: string) => process.stdout.write(`${text}\n`);

function isRole(what: string): what is (typeof roles)[number] {
	return (roles as readonly string[]).includes(what);
}

describe.each(databasesUnderTest("crash"))("a swarm that keeps its money in $name", ({ skip, location, clean }) => {
	afterAll(clean);
	const start = async () =>
		CrashSwarm.start(await temporaryHome(), { hub: await location(), gateway: await location() });

	it.skipIf(skip)("survives a death at every point", { timeout: 600_000 }, async () => {
		await using swarm = await start();
		for (const point of failpoints) {
			await swarm.crashAt(point);
			await swarm.settle();
		}
	});

	it.skipIf(skip)(
		`survives ${crashes} deaths at random points (seed ${seed})`,
		{ timeout: crashes * 20_000 },
		async () => {
			const random = seededRandom(seed);
			const pick = <T>(items: readonly T[]) => items[Math.floor(random.uniform() * items.length)]!;
			await using swarm = await start();
			let last = await swarm.settle();
			for (let crash = 1; crash <= crashes; crash++) {
				// One in four anywhere between the points.
				const what = random.uniform() < 0.25 ? pick(roles) : pick(failpoints);
				const during = `crash ${crash} (${what}, seed ${seed})`;
				try {
					await (isRole(what) ? swarm.kill(what) : swarm.crashAt(what));
					const now = await swarm.settle();
					expect(now.nano).toBeGreaterThanOrEqual(last.nano);
					last = now;
					if (crash % 50 === 0) say(`${crash} of ${crashes} crashes`);
				} catch (error) {
					throw new Error(`${during}: ${(error as Error).message}`, { cause: error });
				}
			}
			say(`${crashes} crashes, seed ${seed}: ${last.pairs} pairs, ${last.nano} nano-KVR, all agree`);
		},
	);
});
