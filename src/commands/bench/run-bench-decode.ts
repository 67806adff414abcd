import { benchDecode, type DecodeBench } from "../../bench/decode.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { tokenizerOf } from "../../model/tokenizer.ts";
import { withBackbone, withOwnSwarm } from "../own-swarm.ts";
import type { Context } from "../program/context.ts";
import type { BenchDecodeOptions } from "./bench-decode.ts";

const waitMs = 60_000;

/** Measures decoding with local experts and, unless there are to be no workers, through a swarm on loopback. */
export async function runBenchDecode(context: Context, options: BenchDecodeOptions): Promise<DecodeBench> {
	const { clock, signal, home } = context;
	const { engine, threads, memory, tokens, workers } = options;
	const model = await openNamedModel(home, options.model);
	await model.weights.close();
	const bench = {
		settings: { home, model: options.model, engine, threads, ...(memory && { memoryBytes: memory }) },
		prompt: tokenizerOf(model.metadata).encode(options.prompt, { special: true }),
		tokens,
		batches: options.batches.length > 0 ? options.batches : [1],
		clock,
		signal,
	};
	if (workers === 0) return benchDecode(bench);
	const layers = [...model.shape.fullAttention.keys()];
	return withOwnSwarm(context, options, model.shape, (hub, identity) =>
		withBackbone(context, { model, hub, identity, layers, waitMs, wholeRows: true }, ({ remote }) =>
			benchDecode({ ...bench, remote }),
		),
	);
}
