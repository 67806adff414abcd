import { plainError } from "../errors.ts";
import type { ExpertEngine } from "./engine.ts";
import type { EngineCall, EngineReply, OpenedEngine } from "./engine-port.ts";

/** The computing side: opens an engine at the first call, then answers one call after another. */
export function serveEngine(
	open: () => Promise<ExpertEngine>,
	reply: (reply: EngineReply, transfer: ArrayBuffer[]) => void,
): (call: EngineCall & { readonly id: number }) => void {
	let opening: Promise<ExpertEngine> | null = null;
	let previous: Promise<unknown> = Promise.resolve();

	const answer = async ({ id, ...call }: EngineCall & { readonly id: number }) => {
		try {
			opening ??= open();
			const value = await perform(await opening, call);
			const moves = value instanceof Float32Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
			reply({ id, value }, moves);
		} catch (error) {
			reply({ id, error: plainError(error) }, []);
		}
	};
	return (call) => {
		previous = previous.then(() => answer(call));
	};
}

async function perform(engine: ExpertEngine, call: EngineCall): Promise<unknown> {
	switch (call.call) {
		case "open":
			return { engineClass: engine.engineClass, proof: engine.proof } satisfies OpenedEngine;
		case "load":
			await engine.load(call.layer, call.expert, call.weights);
			return engine.bytesHeld;
		case "unload":
			await engine.unload(call.layer, call.expert);
			return engine.bytesHeld;
		case "compute":
			return engine.compute(call.batch);
		case "close":
			return engine.close();
	}
}
