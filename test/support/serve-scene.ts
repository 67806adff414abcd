import { expect } from "vitest";
import type { ExpertEngine } from "../../src/experts/engine.ts";
import { silentLog } from "../../src/io/log.ts";
import type { Link } from "../../src/protocol/link.ts";
import type { Dispatch, SessionMessage, WelcomeBody } from "../../src/protocol/messages.ts";
import { tensorOfFloats } from "../../src/protocol/tensor.ts";
import { fileSource } from "../../src/worker/expert-source.ts";
import { HeldExperts } from "../../src/worker/held-experts.ts";
import { loadExperts } from "../../src/worker/load-experts.ts";
import { type ServeParts, type Serving, serveLink } from "../../src/worker/serve.ts";
import { Tally } from "../../src/worker/tally.ts";
import { type FakeClock, fakeClock, settle } from "./fake-clock.ts";
import { helloFacts, linkPair, workerIdentity } from "./link-pair.ts";
import { plainModel } from "./plain-engine.ts";
import { bytes, sampleWelcomeBody } from "./sample-messages.ts";
import { seededRandom } from "./seeded-random.ts";

// One worker being served over memory, and the backbone's end of its link.

export const dims = { layers: 4, experts: 8, hidden: 40, width: 12 };
export const welcome: WelcomeBody = {
	...sampleWelcomeBody,
	limits: { memoryBytes: 2 ** 30, rowsMax: 8, dispatchesMax: 3, inFlightBytesMax: 20 * dims.hidden * 4 },
	model: { ...sampleWelcomeBody.model, ...dims, expertWidth: dims.width, topK: 2 },
};
const model = plainModel(dims, welcome.model.modelId);
const random = seededRandom(3);
/** A random row. */
export const row = () => Float32Array.from({ length: dims.hidden }, () => random.uniform() - 0.5);

export interface Scene {
	readonly clock: FakeClock;
	readonly backbone: Link;
	readonly tally: Tally;
	readonly arrived: SessionMessage[];
	readonly digests: Uint8Array[];
	readonly serving: Serving;
}

/** A worker that holds experts 0-5 of layer 1, its first `holding` already taken off. */
export async function scene(engine: ExpertEngine, change: Partial<ServeParts> = {}): Promise<Scene> {
	const clock = fakeClock();
	const hello = { offer: welcome.limits } as const;
	const { worker, backbone } = await linkPair({ clock, welcome, hello: helloFacts(workerIdentity, hello) });
	const held = new HeldExperts();
	await loadExperts([{ layer: 1, first: 0, count: 6 }], {
		source: fileSource(model),
		engine,
		held,
		asMuchAsFits: false,
		signal: new AbortController().signal,
	});
	const tally = new Tally();
	const arrived: SessionMessage[] = [];
	const digests: Uint8Array[] = [];
	backbone.onMessage = (message, _, digest) => {
		arrived.push(message);
		digests.push(digest);
	};
	const serving = serveLink({
		link: worker,
		welcome,
		engine,
		held,
		identity: workerIdentity,
		payout: bytes(32, 5),
		clock,
		log: silentLog,
		tally,
		...change,
	});
	await settle();
	expect(arrived).toEqual([{ kind: "holding", ready: [{ layer: 1, first: 0, count: 6 }] }]);
	arrived.length = 0;
	digests.length = 0;
	return { clock, backbone, tally, arrived, digests, serving };
}

/** A dispatch of layer 1, mode 0. */
export function dispatch(
	id: number,
	rows: readonly Float32Array[],
	pairs: readonly (readonly [number, number])[],
): Dispatch {
	const values = new Float32Array(rows.length * dims.hidden);
	rows.forEach((one, i) => {
		values.set(one, i * dims.hidden);
	});
	return {
		kind: "dispatch",
		id,
		layer: 1,
		deadlineMs: 1000,
		mode: 0,
		dtype: "f32",
		rowCount: rows.length,
		rowIndex: Uint16Array.from(pairs, ([at]) => at),
		expert: Uint16Array.from(pairs, ([, expert]) => expert),
		weight: new Float32Array(0),
		rows: tensorOfFloats(values),
	};
}
