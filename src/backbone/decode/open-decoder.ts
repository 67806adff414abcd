import type { ExpertEngine } from "../../experts/engine.ts";
import type { MatrixEngine } from "../../experts/matrices.ts";
import type { Clock } from "../../io/clock.ts";
import type { Model } from "../../model/model.ts";
import { loadAttention } from "./attention.ts";
import { Decoder, type Layer } from "./decoder.ts";
import { loadDeltaNet } from "./delta-net.ts";
import { Embedding } from "./embedding.ts";
import { loadExpertBlock } from "./expert-block.ts";
import { LocalExperts } from "./local-experts.ts";
import { openTextMemory } from "./open-text-memory.ts";
import { RemoteLayers, type RemotePolicy } from "./remote-layers.ts";
import { Stopwatch } from "./step-times.ts";

/** What a decoder is made of. It closes neither the model nor the engines. */
export interface DecoderOptions {
	readonly model: Model;
	readonly matrices: MatrixEngine;
	readonly experts: ExpertEngine;
	readonly clock: Pick<Clock, "monotonic">;
	/** Layers whose experts are computed elsewhere. Absent: everything here. */
	readonly remote?: RemotePolicy;
	/** Most bytes of experts kept loaded here. @default unlimited */
	readonly memoryBytes?: number;
	/** Most bytes that texts may remember. @default unlimited */
	readonly textBytes?: number;
}

/** Loads everything of a model but its routed experts, which are loaded when they are used. Throws what model and engines throw. */
export async function openDecoder({ model, matrices, ...options }: DecoderOptions): Promise<Decoder> {
	const { shape, weights } = model;
	const local = new LocalExperts(model, options.experts, options.memoryBytes);
	const remote = options.remote ? new RemoteLayers(options.remote, local) : null;
	const stopwatch = new Stopwatch(options.clock);
	const memory = openTextMemory(shape, options.textBytes === undefined ? {} : { bytesMost: options.textBytes });
	const layers: Layer[] = [];
	for (let index = 0; index < shape.layers; index++) {
		layers.push({
			mixerNorm: await weights.floats(`blk.${index}.attn_norm.weight`),
			mixer: shape.fullAttention[index]
				? await loadAttention(model, index, matrices, memory)
				: await loadDeltaNet(model, index, matrices, memory),
			expertNorm: await weights.floats(`blk.${index}.post_attention_norm.weight`),
			experts: await loadExpertBlock(model, index, matrices, { local, remote, stopwatch }),
		});
	}
	const headTensor = weights.has("output.weight") ? "output.weight" : "token_embd.weight";
	const head = await matrices.group("head", [await weights.matrix(headTensor)]);
	return new Decoder({
		model,
		embedding: new Embedding(weights, shape.hidden),
		layers,
		outputNorm: await weights.floats("output_norm.weight"),
		head,
		local,
		remote,
		stopwatch,
		memory,
		async close() {
			for (const { mixer, experts } of layers) {
				await mixer.projections.close();
				await experts.close();
			}
			await head.close();
		},
	});
}
