import { openEngine } from "../../src/experts/open-engine.ts";
import { systemClock } from "../../src/io/clock.ts";
import { silentLog } from "../../src/io/log.ts";
import { systemRandom } from "../../src/io/random.ts";
import type { Model } from "../../src/model/model.ts";
import { dialHandshake } from "../../src/protocol/handshake.ts";
import type { Transport } from "../../src/protocol/link.ts";
import { bindPayout } from "../../src/protocol/payout.ts";
import { fileSource } from "../../src/worker/expert-source.ts";
import { HeldExperts, parseHold } from "../../src/worker/held-experts.ts";
import { loadExperts } from "../../src/worker/load-experts.ts";
import { type ServeParts, type Serving, serveLink } from "../../src/worker/serve.ts";
import { Tally } from "../../src/worker/tally.ts";
import { scriptedIdentity } from "./scripted-worker.ts";

export interface ServingWorker {
	readonly serving: Serving;
	readonly tally: Tally;
	/** Breaks the connection as a lost process does. */
	kill(): Promise<void>;
}

/** The real worker's serve core with real experts of `model`, over any transport. */
export async function startServingWorker(
	transport: Transport,
	{ model, seed, hold, corrupt }: { model: Model; seed: number; hold: string } & Pick<ServeParts, "corrupt">,
): Promise<ServingWorker> {
	const { shape, modelId } = model;
	const memoryBytes = 2 ** 30;
	const engine = await openEngine({ engine: "f32", hidden: shape.hidden, threads: 1, memoryBytes });
	const held = new HeldExperts();
	await loadExperts(parseHold(hold, shape), {
		source: fileSource(model),
		engine,
		held,
		asMuchAsFits: false,
		signal: new AbortController().signal,
	});
	const identity = scriptedIdentity(seed);
	const payout = bindPayout(identity, identity.publicKey);
	const { link, welcome } = await dialHandshake(transport, {
		identity,
		clock: systemClock,
		random: systemRandom,
		hello: {
			instance: new Uint8Array(16).fill(seed),
			epoch: 1,
			build: "test",
			engine: { class: engine.engineClass, device: "cpu", memoryBytes, threads: 1, selfCheck: new Uint8Array(0) },
			offer: { memoryBytes, rowsMax: 4096, dispatchesMax: 16, inFlightBytesMax: 2 ** 24 },
			holds: held.ranges().map((range) => ({ ...range, modelId })),
			payout,
		},
	});
	const tally = new Tally();
	const serving = serveLink({
		link,
		welcome,
		engine,
		held,
		identity,
		payout: identity.publicKey,
		clock: systemClock,
		log: silentLog,
		tally,
		corrupt,
	});
	return {
		serving,
		tally,
		async kill() {
			transport.terminate();
			await serving.ended;
			await engine.close();
		},
	};
}
