import { KvasirError } from "../../errors.ts";
import { openEnginePair } from "../../experts/open-engine-pair.ts";
import { systemClock } from "../../io/clock.ts";
import { inspectModel } from "../../model/inspect.ts";
import type { Model } from "../../model/model.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import type { RemoteExperts } from "../remote.ts";
import type { DecodeFacts, DecodeReport, DecodeSettings } from "./decode-messages.ts";
import type { Decoder } from "./decoder.ts";
import { openDecoder } from "./open-decoder.ts";
import type { RemotePolicy } from "./remote-layers.ts";
import { Scheduler } from "./scheduler.ts";

/** A model, its engines, and what decodes with them, on this thread. */
export interface DecodeRoom {
	readonly decoder: Decoder;
	readonly scheduler: Scheduler;
	readonly facts: DecodeFacts;
	report(): DecodeReport;
	/** Ends running texts as aborted and closes everything. */
	close(): Promise<void>;
}

/** Opens what the settings name. Throws what opening the model and the engine throws, and `usage` for a layer there is not. */
export async function openDecodeRoom(
	settings: DecodeSettings,
	remote?: Pick<RemoteExperts, "request">,
): Promise<DecodeRoom> {
	const model = await openNamedModel(settings.home, settings.model, {
		requireWeights: settings.requireWeights ?? false,
	});
	try {
		return await furnish(model, settings, remote);
	} catch (error) {
		await model.weights.close();
		throw error;
	}
}

async function furnish(
	model: Model,
	settings: DecodeSettings,
	remote: Pick<RemoteExperts, "request"> | undefined,
): Promise<DecodeRoom> {
	const { shape, name, modelId, weightsKind } = model;
	const remoteLayers = remoteLayersOf(settings, shape.layers);
	const engines = await openEnginePair({
		engine: settings.engine,
		hidden: shape.hidden,
		threads: settings.threads ?? 1,
		memoryBytes: engineBytes(model, settings),
	});
	const decoder = await openDecoder({
		model,
		...engines,
		clock: systemClock,
		...(remote && settings.remote && { remote: policyOf(model, settings.remote, remoteLayers, remote) }),
		...(settings.memoryBytes !== undefined && { memoryBytes: settings.memoryBytes }),
		...(settings.textBytes !== undefined && { textBytes: settings.textBytes }),
	});
	const stepsMost = remoteLayers.length > 0 ? stepsWithWorkers : 1;
	const scheduler = new Scheduler(decoder, { stepsMost, ...settings.scheduler });
	return {
		decoder,
		scheduler,
		facts: { engineClass: engines.experts.engineClass, name, modelId, weightsKind, shape, remoteLayers },
		report: () => ({
			times: decoder.times,
			remote: decoder.remote?.counts ?? null,
			partials: decoder.remote?.check?.report ?? null,
		}),
		async close() {
			await scheduler.close();
			await decoder.close();
			await engines.close();
			await model.weights.close();
		},
	};
}

/** Steps under way where workers compute experts: enough that this thread and they have something to do while messages travel. */
const stepsWithWorkers = 4;

/** Laid out for the canonical kernels, weights take at most this many times their bytes in the file. */
const layoutGrowth = 1.1;

/** What the engine may take: room for all dense matrices and for the experts kept loaded. Memory that is not used is not taken. */
function engineBytes(model: Model, { engine, memoryBytes = Number.POSITIVE_INFINITY }: DecodeSettings): number {
	if (engine === "f32") return Number.POSITIVE_INFINITY; // no arena; the decoder keeps to its budget by unloading
	const { bytes, expertBytes } = inspectModel(model);
	return Math.ceil(layoutGrowth * (bytes - expertBytes) + Math.min(memoryBytes, layoutGrowth * expertBytes));
}

function policyOf(
	{ weights }: Model,
	{ layers: _, dtype, ...policy }: NonNullable<DecodeSettings["remote"]>,
	layers: readonly number[],
	remote: Pick<RemoteExperts, "request">,
): RemotePolicy {
	const plain = dtype === "f32" ? layers : layers.filter((layer) => !isBlockQuantised(weights.expertTypes(layer)));
	if (dtype === "q14" && plain.length > 0) {
		const { gate, up } = weights.expertTypes(plain[0]!);
		const state = `the gate and up of layer ${plain[0]} are ${gate} and ${up}, not both in blocks`;
		throw new KvasirError("unsupported_type", `Cannot send rows as q14: ${state}`, { hint: "Leave --dtype out" });
	}
	return { ...policy, remote, layers: new Set(layers), quantisable: (layer) => !plain.includes(layer) };
}

/** Both read the row in activation blocks. */
function isBlockQuantised({ gate, up }: ReturnType<Model["weights"]["expertTypes"]>): boolean {
	const widened = ["F32", "F16", "BF16"];
	return !widened.includes(gate) && !widened.includes(up);
}

function remoteLayersOf({ remote }: DecodeSettings, layers: number): number[] {
	const all = Array.from({ length: layers }, (_, layer) => layer);
	if (!remote) return [];
	if (remote.layers === "all") return all;
	const alien = remote.layers.find((layer) => !all.includes(layer));
	if (alien === undefined) return [...new Set(remote.layers)].sort((a, b) => a - b);
	throw new KvasirError("usage", `Cannot make layer ${alien} remote: the model has layers 0 to ${layers - 1}`);
}
