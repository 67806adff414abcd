import { describe, expect, it } from "vitest";
import { startImpairingRelay } from "../../test/support/impairing-relay.ts";
import { anyPort, eventually, hubSecret, realParts, testKey } from "../../test/support/splice-swarm.ts";
import { systemClock } from "../io/clock.ts";
import { systemRandom } from "../io/random.ts";
import { startGateway } from "../splice/gateway/gateway.ts";
import { webSocketDialer } from "../worker/dialer.ts";
import { runChecks } from "./check.ts";
import { idleCheck, idleTimes } from "./idle-check.ts";

const clock = systemClock;

/** A gateway without a hub, behind a path that cuts idle connections. */
async function startScene(impairment: Parameters<typeof startImpairingRelay>[1], limits = {}) {
	const relay = await startImpairingRelay({ host: "127.0.0.1", port: 1 }, impairment);
	const host = `127.0.0.1:${relay.port}`;
	const gateway = await startGateway(
		{
			listen: anyPort,
			admin: anyPort,
			certificate: null,
			publicHosts: [host],
			hub: { host: "127.0.0.1", port: 1 },
			hubSecret,
			limits,
		},
		realParts,
	);
	relay.target = gateway.address;
	const parts = { url: `ws://${host}`, identity: testKey(1), clock, random: systemRandom };
	const dial = webSocketDialer({ ...parts, path: "/v1/idle" });
	return {
		relay,
		gateway,
		async measure(idleMs: number[], heartbeatMs: number) {
			const check = idleCheck({ dial, clock, idleMs, heartbeatMs, answerMs: 400 });
			const [result] = await runChecks([check], { clock, signal: new AbortController().signal });
			return result!;
		},
		async [Symbol.asyncDispose]() {
			await gateway.close();
			await relay[Symbol.asyncDispose]();
		},
	};
}

describe("idleCheck()", () => {
	it("measures after which time a path cuts, at once for all times, and holds it against the heartbeat", async () => {
		await using scene = await startScene({ idleCutMs: 1_000 });
		const cut = scene.measure([200, 500, 2_000, 3_000], 15_000);
		await eventually("all links to be open at once", () => scene.relay.open === 4);
		expect(await cut).toMatchObject({
			state: "failed",
			found: expect.stringMatching(/^a link idle for 1(\.\d)? s is cut, for 0\.5 s it is not$/),
			hint: expect.stringContaining("heartbeat of 15 s"),
		});
	});

	it("finds a path that cuts later than the heartbeat good enough, and says when it cuts", async () => {
		await using scene = await startScene({ idleCutMs: 3_600 });
		expect(await scene.measure([300, 5_000], 500)).toMatchObject({
			state: "ok",
			found: expect.stringMatching(/^a link idle for 3\.\d s is cut, for 0\.3 s it is not; the heartbeat of 0\.5 s/),
		});
	});

	it("finds out about a cut that nobody is told of", async () => {
		await using scene = await startScene({ idleCutMs: 1_000, idleCut: "silent" });
		expect(await scene.measure([300, 2_000], 15_000)).toMatchObject({
			state: "failed",
			found: "a link idle for 2 s is cut, and nobody is told, for 0.3 s it is not",
		});
	});

	it("says for how long none was cut, gives its places back, and names links that were refused", async () => {
		await using scene = await startScene({}, { linksPerKeyMax: 2 });
		expect(await scene.measure([200, 300], 15_000)).toMatchObject({
			state: "ok",
			found: "a link idle for 0.3 s is not cut",
		});
		await eventually("every link to be gone", () => scene.relay.open === 0);
		expect(await scene.measure([200, 300, 400], 15_000)).toMatchObject({
			state: "ok",
			found: expect.stringMatching(/is not cut; 1 of 3 links were refused$/),
		});
	});

	it("fails with the gateway's reason where no link is let in", async () => {
		await using scene = await startScene({}, { linksPerKeyMax: 0 });
		expect(await scene.measure([200, 300], 15_000)).toMatchObject({
			state: "failed",
			found: expect.stringContaining("links_per_key"),
		});
	});
});

it("idleTimes() goes up to what is asked for, with at most six links", () => {
	expect(idleTimes(20)).toEqual([15_000, 20_000]);
	expect(idleTimes(5)).toEqual([5_000]);
	expect(idleTimes(120)).toEqual([15_000, 30_000, 45_000, 60_000, 90_000, 120_000]);
	expect(idleTimes(300)).toEqual([15_000, 30_000, 60_000, 120_000, 240_000, 300_000]);
});
