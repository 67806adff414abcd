import { roundTripOf, startDelayRelay } from "../../bench/delay-relay.ts";
import { benchPath, type PathBench } from "../../bench/path.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { tokenizerOf } from "../../model/tokenizer.ts";
import { withBackbone, withOwnSwarm } from "../own-swarm.ts";
import type { Context } from "../program/context.ts";
import type { BenchPathOptions } from "./bench-path.ts";

const waitMs = 60_000;

/** Measures a path of a stated round trip: workers, a relay that delays, gateway, hub and backbone on this machine. */
export async function runBenchPath(context: Context, options: BenchPathOptions): Promise<PathBench> {
	const { clock, signal, home } = context;
	const { engine, threads, memory, tokens, rtt } = options;
	const model = await openNamedModel(home, options.model);
	await model.weights.close();
	const layers = [...model.shape.fullAttention.keys()];
	const relay = await startDelayRelay(rtt / 2, clock);
	const rttMs = await roundTripOf(relay, clock);
	const workersVia = {
		port: relay.port,
		leadTo(port: number) {
			relay.target = { host: "127.0.0.1", port };
		},
	};
	try {
		return await withOwnSwarm(context, { ...options, workersVia }, model.shape, (hub, identity) =>
			withBackbone(context, { model, hub, identity, layers, waitMs, wholeRows: true }, (backbone) =>
				benchPath({
					settings: { home, model: options.model, engine, threads, ...(memory && { memoryBytes: memory }) },
					prompt: tokenizerOf(model.metadata).encode(options.prompt, { special: true }),
					tokens,
					batches: options.batches.length > 0 ? options.batches : [1, 8],
					rttMs,
					remote: backbone.remote,
					workers: () => backbone.snapshot().workers,
					clock,
					signal,
				}),
			),
		);
	} finally {
		await relay.close();
	}
}
