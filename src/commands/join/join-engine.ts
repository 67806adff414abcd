import { KvasirError } from "../../errors.ts";
import type { ExpertEngine } from "../../experts/engine.ts";
import { OnDemandEngine } from "../../experts/on-demand-engine.ts";
import type { EngineName } from "../../experts/open-engine.ts";
import type { Model } from "../../model/model.ts";
import { type EarlyEngine, LateEngine } from "../../worker/late-engine.ts";
import { type EngineChoice, openWorkerEngine } from "../model/engines.ts";

/** What each engine's answers are called, for those that need not be open to know. */
const classes: Partial<Record<EngineName, string>> = { canonical: "canonical-1", f32: "f32" };

/**
 * The engine of a worker: now where a model is at hand, else once the backbone has said which one. Throws what `openWorkerEngine`
 * throws, `usage` for an engine that has to see a model first.
 */
export async function openJoinEngine(
	choice: Omit<EngineChoice, "hidden" | "expert">,
	model: Model | null,
): Promise<ExpertEngine> {
	if (model !== null) {
		const { shape, weights, weightsKind } = model;
		const engine = await openWorkerEngine({
			...choice,
			hidden: shape.hidden,
			expert: (layer, expert) => weights.expert(layer, expert),
		});
		// Synthetic experts are announced at once, and made when they are asked for.
		return weightsKind === "synthetic" ? new OnDemandEngine(engine) : engine;
	}
	const engineClass = classes[choice.engine];
	if (engineClass !== undefined) {
		// A device is looked for at once: who asked for one is told now that there is none.
		const early = choice.gpu === undefined ? null : await openEarly(choice);
		return new LateEngine(engineClass, (hidden, expert) => openWorkerEngine({ ...choice, hidden, expert }), early);
	}
	throw new KvasirError(
		"usage",
		`Cannot join with the engine ${choice.engine} and no model: its class depends on the model`,
		{
			hint: "Say --model PATH, or use --engine canonical",
		},
	);
}

/** A graphics device, which suits any model. */
async function openEarly(choice: Omit<EngineChoice, "hidden" | "expert">): Promise<EarlyEngine> {
	let source: EngineChoice["expert"] = () => Promise.reject(new KvasirError("internal", "Cannot load: no model yet"));
	const engine = await openWorkerEngine({ ...choice, hidden: 0, expert: (...which) => source(...which) });
	return {
		engine,
		setSource(expert) {
			source = expert;
		},
	};
}
