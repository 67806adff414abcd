import { KvasirError } from "../../errors.ts";
import type { ExpertEngine } from "../../experts/engine.ts";
import { OnDemandEngine } from "../../experts/on-demand-engine.ts";
import type { EngineName } from "../../experts/open-engine.ts";
import type { Model } from "../../model/model.ts";
import { type EarlyEngine, LateEngine } from "../../worker/late-engine.ts";
import { type EngineChoice, openWorkerEngine } from "../model/engines.ts";

/** What each engine's answers are called, for those that need not be open to know: onnxruntime's class names its version and the device. */
const classes: Partial<Record<EngineName, string>> = { canonical: "canonical-1", f32: "f32" };

/** The engine of a worker: now where a model is at hand, else once the backbone has said which one. Throws what `openWorkerEngine` throws. */
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
	const open = (same: typeof choice) => (hidden: number, expert: EngineChoice["expert"]) =>
		openWorkerEngine({ ...same, hidden, expert });
	if (engineClass === undefined) {
		const known = await tryEngine(choice);
		// What was found is what hello names: another device that fits the choice as well would be of another class.
		return new LateEngine(known, open({ ...choice, gpu: known.proof?.id ?? choice.gpu }));
	}
	if (choice.gpu === undefined) return new LateEngine({ engineClass }, open(choice));
	// A device is looked for at once: who asked for one is told now that there is none.
	const early = await openEarly(choice);
	return new LateEngine(early.engine, open(choice), early);
}

/** Opens an engine for the width of no model, and closes it: what it is of and where it runs is the same for every model. */
async function tryEngine(
	choice: Omit<EngineChoice, "hidden" | "expert">,
): Promise<Pick<ExpertEngine, "engineClass" | "proof">> {
	const { engine } = await openEarly(choice);
	await engine.close();
	return engine;
}

/** An engine for no width: a canonical graphics device suits any model. Its experts come from where is set later. */
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
