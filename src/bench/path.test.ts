import { expect, onTestFinished, test } from "vitest";
import { EngineRemote } from "../../test/support/engine-remote.ts";
import type { WorkerSnapshot } from "../backbone/snapshot.ts";
import { packagePath } from "../io/built.ts";
import { systemClock } from "../io/clock.ts";
import { roundTripOf, startDelayRelay } from "./delay-relay.ts";
import { benchPath } from "./path.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");

test("local first, then one layer remote, then all: one round trip for each remote layer of a step", async () => {
	const remote = await EngineRemote.open(tiny);
	onTestFinished(() => remote.close());
	const bench = await benchPath({
		settings: { home: "", model: tiny, engine: "f32" },
		prompt: [267, 270, 262, 374, 394, 371, 257],
		tokens: 6,
		batches: [1, 4],
		rttMs: 20,
		remote,
		workers: () => [{ rttMsP50: 5, computeMsP50: 2 } as WorkerSnapshot],
		clock: systemClock,
	});
	expect(
		bench.measurements.map(({ remoteLayers, batch, roundTripsPerStep }) => [remoteLayers, batch, roundTripsPerStep]),
	).toEqual([
		[0, 1, 0],
		[1, 1, 1],
		[bench.layers, 1, bench.layers],
		[bench.layers, 4, bench.layers],
	]);
	const [local, one, , many] = bench.measurements;
	expect(local!.layerMs).toEqual({ wait: 0, compute: 0, wire: 0 });
	expect(one!.layerMs).toEqual({ wait: one!.stepMs.waitMs, compute: 2, wire: 3 });
	expect(bench.oneLayer).toEqual({ addedMs: one!.msPerStep - local!.msPerStep, aimMs: 23 });
	expect(bench.throughput).toMatchObject({ batch: 4 });
	expect(many!.tokensPerSecond).toBeCloseTo((1000 * 4) / many!.msPerStep, 6);
});

test("a relay that delays takes at least the round trip that it was told, and leads where it led before", async () => {
	const relay = await startDelayRelay(10, systemClock);
	onTestFinished(() => relay.close());
	const target = { host: "127.0.0.1", port: 9 };
	relay.target = target;
	expect(await roundTripOf(relay, systemClock)).toBeGreaterThan(18);
	expect(relay.target).toBe(target);
});
