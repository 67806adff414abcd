import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startBackbone } from "../../src/backbone/backbone.ts";
import { loopbackAddress } from "../../src/bench/idle-links.ts";
import { startIdleWorker } from "../../src/bench/idle-worker.ts";
import { systemClock } from "../../src/io/clock.ts";
import { keyPairFromSeed } from "../../src/io/crypto.ts";
import { silentLog } from "../../src/io/log.ts";
import { systemRandom } from "../../src/io/random.ts";
import { loadNodeKey } from "../../src/wallet/node-key.ts";
import { freePort } from "../support/free-port.ts";
import { runs } from "../support/long.ts";
import { startGatewayPart, startHubPart } from "../support/part-processes.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { until } from "../support/until.ts";

const real = { clock: systemClock, random: systemRandom, log: silentLog };
const model = {
	name: "tiny",
	modelId: new Uint8Array(32),
	layers: 1,
	experts: 4,
	topK: 2,
	hidden: 32,
	expertWidth: 32,
};

/** The same crowd for its rate, whatever its size: 200 workers at 20 a second, the default. */
const crowd = runs(40, 200);
const admitRate = crowd / 10;
/** What a gateway that was quiet lets in at once (src/splice/limits.ts). */
const burst = 2 * admitRate;

it("a gateway killed with a crowd of workers: all are back within 90 s, no faster than they are admitted", async () => {
	const home = await temporaryHome();
	const hub = await startHubPart(home);
	const atRate = (rate: number) => ({ args: ["--admit-rate", String(rate)] });
	// The crowd's first coming is not what is asked: no rate.
	const gateway = await startGatewayPart(home, hub, { listen: `127.0.0.1:${await freePort()}` }, atRate(1_000));
	const [host, port] = hub.relay.split(":");
	const backbone = await startBackbone({
		...real,
		identity: await loadNodeKey(join(home, "backbone")),
		model,
		hub: { host: host!, port: Number(port) },
	});
	onTestFinished(() => backbone.close());

	const ending = new AbortController();
	const connectedMs: number[] = [];
	const codes: Record<string, number> = {};
	const workers = Array.from({ length: crowd }, (_, i) =>
		startIdleWorker({
			url: `ws://127.0.0.1:${gateway.port}`,
			identity: keyPairFromSeed(systemRandom.bytes(32)),
			// Elsewhere than on Linux one address is all there is; its own limit allows this test's small crowd.
			from: process.platform === "linux" ? loopbackAddress(i) : undefined,
			clock: systemClock,
			random: systemRandom,
			signal: AbortSignal.any([ending.signal]),
			onEvent(event) {
				if (event.event === "connected") connectedMs.push(performance.now());
				if (event.event === "disconnected") codes[event.code] = (codes[event.code] ?? 0) + 1;
			},
		}),
	);
	onTestFinished(async () => {
		ending.abort();
		await Promise.allSettled(workers.map(({ ended }) => ended));
	});
	const linked = () => backbone.snapshot().workers.length;
	await until(() => linked() === crowd, "the crowd to join", 120_000);

	await gateway.child.kill();
	connectedMs.length = 0;
	const startMs = performance.now();
	await startGatewayPart(home, hub, { listen: `127.0.0.1:${gateway.port}` }, atRate(admitRate));
	await until(() => connectedMs.length >= crowd && linked() === crowd, "the crowd to come back", 90_000);
	console.log(
		`${crowd} workers were back after ${Math.round(performance.now() - startMs)} ms: ${JSON.stringify(codes)}`,
	);

	expect(connectedMs).toHaveLength(crowd);
	// A handshake may end up to a second after its admission: what was let in over `ms` shows over a second more or less.
	for (const [i, from] of connectedMs.entries()) {
		for (const [k, to] of connectedMs.slice(i).entries()) {
			expect(k + 1).toBeLessThanOrEqual(burst + admitRate * ((to - from) / 1000 + 1));
		}
	}
}, 300_000);
