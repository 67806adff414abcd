import type { DecodeSettings } from "../../backbone/decode/decode-messages.ts";
import { openDecodeRoom } from "../../backbone/decode/decode-room.ts";
import { KvasirError } from "../../errors.ts";
import { type EvidenceReport, readEvidence, replayEvidence } from "../../verify/evidence.ts";
import type { Context } from "../program/context.ts";

/** Computes what a failed audit asked again, with this machine's model and engine. Throws what reading the file and the model throws. */
export async function verifyEvidence(
	{ home, signal }: Context,
	path: string,
	settings: Pick<DecodeSettings, "model" | "engine" | "threads">,
): Promise<EvidenceReport> {
	const evidence = await readEvidence(path);
	const room = await openDecodeRoom({ home, ...settings });
	try {
		const { layer } = evidence.asked;
		const { layers, experts } = room.facts.shape;
		if (layer >= layers || evidence.asked.expert.some((expert) => expert >= experts)) {
			throw new KvasirError("bad_file", `Cannot replay ${path}: the model has no such layer or expert`);
		}
		signal.throwIfAborted();
		const { modelId, engineClass } = room.facts;
		return await replayEvidence(evidence, {
			modelId,
			engineClass,
			compute: (batch) => room.decoder.local.compute(batch),
		});
	} finally {
		await room.close();
	}
}
