import type { Backbone } from "../../backbone/backbone.ts";
import { Assigner } from "../../backbone/slices/assigner.ts";
import { openSliceService, type SliceService } from "../../backbone/slices/slices.ts";
import type { Clock } from "../../io/clock.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { Logger } from "../../io/log.ts";
import type { Model } from "../../model/model.ts";
import { type FileModel, isFileModel } from "../../model/open-model.ts";
import type { ModelFacts } from "../../protocol/messages.ts";

/** What a backbone gives to workers without a file: slices, and word of which to hold. */
export interface ExpertOffer {
	readonly slices: SliceService;
	readonly assigner: Assigner;
}

/** The slices of a model's file; null, and the model is closed, where its weights are synthetic: workers make those themselves. */
export async function openSlices(
	model: Model,
	{ name, ...parts }: { name: string; identity: KeyPair; home: string; log: Logger },
): Promise<SliceService | null> {
	if (isFileModel(model)) return openSliceService({ ...parts, model: { ...model, name } satisfies FileModel });
	await model.weights.close();
	return null;
}

/** Starts to assign a backbone's experts. */
export function offerExperts(
	backbone: Backbone,
	slices: SliceService,
	options: { facts: ModelFacts; layers: "all" | readonly number[]; clock: Clock; log: Logger },
): ExpertOffer {
	const { facts, layers, clock, log } = options;
	const asked = layers === "all" ? Array.from({ length: facts.layers }, (_, layer) => layer) : layers;
	return { slices, assigner: new Assigner({ backbone, model: facts, layers: asked, slices, clock, log }) };
}
