import { KvasirError } from "../../errors.ts";
import { sha256Aside } from "../../io/crypto.ts";
import { sliceOf } from "../../model/expert-slice.ts";
import type { Model } from "../../model/model.ts";
import type { ExpertWeights } from "../../model/weight-matrix.ts";
import type { LayerSlices, Manifest } from "../../protocol/manifest.ts";

/**
 * Reads every expert once and lists the SHA-256 of its slice; hashing happens on the thread pool.
 * Throws what reading throws, `bad_weights` where the experts of a layer differ in type, and the signal's reason.
 */
export async function buildManifest(
	{ name, modelId, shape, weights }: Pick<Model, "name" | "modelId" | "shape" | "weights">,
	{ signal, onProgress }: { signal?: AbortSignal; onProgress?: (done: number, total: number) => void } = {},
): Promise<Manifest> {
	const { experts, hidden, expertWidth } = shape;
	const layers: LayerSlices[] = [];
	for (let layer = 0; layer < shape.layers; layer++) {
		const slices: string[] = [];
		let first: ExpertWeights | null = null;
		for (let expert = 0; expert < experts; expert++) {
			signal?.throwIfAborted();
			const read = await weights.expert(layer, expert);
			first ??= read;
			if (typesOf(read).join() !== typesOf(first).join()) {
				throw new KvasirError(
					"bad_weights",
					`Cannot list layer ${layer}: expert ${expert} is of other types than expert 0`,
				);
			}
			slices.push(Buffer.from(await sha256Aside(sliceOf(read))).toString("hex"));
			onProgress?.(layer * experts + expert + 1, shape.layers * experts);
		}
		const { gate, up, down } = first!;
		layers.push({ types: typesOf(first!), bytes: [gate.bytes.length, up.bytes.length, down.bytes.length], slices });
	}
	return { version: 1, name, modelId: Buffer.from(modelId).toString("hex"), experts, hidden, expertWidth, layers };
}

function typesOf({ gate, up, down }: ExpertWeights): [string, string, string] {
	return [gate.type, up.type, down.type];
}
