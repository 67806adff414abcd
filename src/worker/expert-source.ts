import { KvasirError } from "../errors.ts";
import { sha256Aside } from "../io/crypto.ts";
import { expertOfSlice, type SliceLayout, sliceBytesOf, sliceOf } from "../model/expert-slice.ts";
import type { Model } from "../model/model.ts";
import { type ExpertWeights, type TensorType, tensorTypes } from "../model/weight-matrix.ts";
import type { Manifest } from "../protocol/manifest.ts";
import type { ModelFacts } from "../protocol/messages.ts";
import { type FetchParts, fetchSlice } from "./slice-fetch.ts";

/** Where a worker's experts come from. */
export interface ExpertSource {
	/** Bytes of an expert as it comes; null while unknown. */
	bytesOf(layer: number): number | null;
	expert(layer: number, expert: number, signal: AbortSignal): Promise<ExpertWeights>;
}

/** A file of this machine. What is read is remembered by its digest, so that it can be compared with a manifest that comes later. */
export interface FileSource extends ExpertSource {
	/** Throws `model_mismatch` naming the first expert that is not what the manifest lists, now or at a later read. */
	checkAgainst(manifest: Manifest): void;
}

export function fileSource({ name, weights }: Pick<Model, "name" | "weights">): FileSource {
	const digests = new Map<string, string>();
	let manifest: Manifest | null = null;
	function check(place: string, digest: string, { layers }: Manifest): void {
		const [layer, expert] = place.split(":").map(Number) as [number, number];
		if (layers[layer]?.slices[expert] === digest) return;
		throw new KvasirError(
			"model_mismatch",
			`Cannot serve ${name}: expert ${expert} of layer ${layer} is not the backbone's`,
			{
				hint: "This file is damaged or another one: fetch it again, or join without --model",
				facts: { layer, expert },
			},
		);
	}
	return {
		bytesOf: () => null,
		async expert(layer, expert) {
			const read = await weights.expert(layer, expert);
			const place = `${layer}:${expert}`;
			const digest = Buffer.from(await sha256Aside(sliceOf(read))).toString("hex");
			if (manifest !== null) check(place, digest, manifest);
			digests.set(place, digest);
			return read;
		},
		checkAgainst(known) {
			for (const [place, digest] of digests) check(place, digest, known);
			manifest = known;
		},
	};
}

/** Weights made from a seed: whoever has the seed has the same, so there is nothing to compare. */
export function seedSource({ weights }: Pick<Model, "weights">): ExpertSource {
	return { bytesOf: () => null, expert: (layer, expert) => weights.expert(layer, expert) };
}

/** Slices of a manifest. */
export interface SliceSource extends ExpertSource {
	/** The hex digest of an expert's slice. */
	digestOf(layer: number, expert: number): string;
}

/** The gateway: slices by the digests of a manifest that is believed. Throws `model_mismatch` for a manifest of another geometry. */
export function sliceSource(manifest: Manifest, model: ModelFacts, parts: Omit<FetchParts, "signal">): SliceSource {
	const layouts = layoutsOf(manifest, model);
	const running = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
	const digestOf = (layer: number, expert: number) => manifest.layers[layer]!.slices[expert]!;
	return {
		digestOf,
		bytesOf: (layer) => sliceBytesOf(layouts[layer]!),
		async expert(layer, expert, signal) {
			const layout = layouts[layer]!;
			const digest = digestOf(layer, expert);
			// Two experts may be the same bytes.
			await running.get(digest)?.catch(() => {});
			const what = `expert ${expert} of layer ${layer}`;
			const fetching = fetchSlice({ digest, bytes: sliceBytesOf(layout), what }, { ...parts, signal });
			running.set(digest, fetching);
			try {
				return expertOfSlice(await fetching, layout);
			} finally {
				if (running.get(digest) === fetching) running.delete(digest);
			}
		},
	};
}

function layoutsOf(manifest: Manifest, model: ModelFacts): SliceLayout[] {
	const { hidden, expertWidth } = model;
	const fits =
		manifest.modelId === Buffer.from(model.modelId).toString("hex") &&
		manifest.layers.length === model.layers &&
		manifest.experts === model.experts &&
		manifest.hidden === hidden &&
		manifest.expertWidth === expertWidth;
	if (!fits) throw mismatch(model, "its manifest is of another model");
	return manifest.layers.map(({ types: [gate, up, down], bytes }, layer) => {
		const layout = { hidden, expertWidth, types: { gate: typeOf(gate), up: typeOf(up), down: typeOf(down) } };
		const total = bytes.reduce((sum, part) => sum + part, 0);
		if (sliceBytesOf(layout) !== total)
			throw mismatch(model, `layer ${layer} of its manifest has other bytes than its types say`);
		return layout;
	});
}

function typeOf(name: string): TensorType {
	if (Object.hasOwn(tensorTypes, name)) return name as TensorType;
	throw new KvasirError("unsupported_type", `Cannot serve weights of type ${name}: this version does not know it`, {
		hint: "Update Kvasir",
	});
}

function mismatch({ name }: ModelFacts, state: string): KvasirError {
	return new KvasirError("model_mismatch", `Cannot serve ${name}: ${state}`);
}
