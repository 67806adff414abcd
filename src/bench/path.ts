import type { DecodeSettings } from "../backbone/decode/decode-messages.ts";
import { type DecodeRoom, openDecodeRoom } from "../backbone/decode/decode-room.ts";
import type { RemoteExperts } from "../backbone/remote.ts";
import type { WorkerSnapshot } from "../backbone/snapshot.ts";
import {
	allAtOnce,
	type DecodeBenchOptions,
	type DecodeMeasurement,
	measureDecode,
	tokensOf,
	warmUp,
} from "./decode.ts";

export interface PathBenchOptions extends Omit<DecodeBenchOptions, "remote" | "batches"> {
	/** What the path adds to a round trip, measured (delay-relay.ts). */
	readonly rttMs: number;
	/** Texts decoded together with all layers remote. */
	readonly batches: readonly number[];
	readonly remote: Pick<RemoteExperts, "request">;
	/** The workers as they are now: their medians tell wire from computing. */
	readonly workers: () => readonly WorkerSnapshot[];
}

/** One line: decoding with some layers' experts at the other end of the path. */
export interface PathMeasurement extends Omit<DecodeMeasurement, "experts"> {
	readonly remoteLayers: number;
	/** Round trips of a step: one for each remote layer. */
	readonly roundTripsPerStep: number;
	/** Of one remote layer, milliseconds: waiting for it, the worker's computing, and the rest of its round trip. */
	readonly layerMs: { readonly wait: number; readonly compute: number; readonly wire: number };
	/** Against one text decoded locally. */
	readonly tokensPerSecondRatio: number;
}

export interface PathBench {
	readonly model: string;
	readonly engineClass: string;
	readonly layers: number;
	readonly rttMs: number;
	readonly measurements: readonly PathMeasurement[];
	/** What one remote layer adds to a token; the aim is the round trip and 15%. */
	readonly oneLayer: { readonly addedMs: number; readonly aimMs: number };
	/** Tokens a second of all texts together, largest batch against one text, all layers remote. */
	readonly throughput: { readonly batch: number; readonly ratio: number } | null;
}

/** Measurements of one text, locally and with one layer remote. */
const tries = 3;

/**
 * Measures what the way to the workers costs: local, one layer remote, all layers remote at each batch size. Throws
 * `remote_required` rather than measure what was computed here instead.
 */
export async function benchPath(options: PathBenchOptions): Promise<PathBench> {
	const { settings, batches, rttMs } = options;
	const open = (remote?: DecodeSettings["remote"]) => {
		return openDecodeRoom({ ...settings, scheduler: allAtOnce(batches), ...(remote && { remote }) }, counted.remote);
	};
	const counted = countedRemote(options.remote);
	const run = async (room: DecodeRoom, remoteLayers: number, batch: number): Promise<Measured> => {
		const before = counted.requests;
		const line = await measureDecode(room, options, remoteLayers === 0 ? "local" : "remote", batch);
		return { ...line, remoteLayers, requests: counted.requests - before, worker: options.workers()[0] };
	};
	/** The least of some: what is added to a step is a difference, and another process in the way would pass for it. */
	const best = async (room: DecodeRoom, remoteLayers: number): Promise<Measured> => {
		await warmUp(room, options);
		const lines: Measured[] = [];
		for (let i = 0; i < tries; i++) lines.push(await run(room, remoteLayers, 1));
		return lines.reduce((least, line) => (line.msPerStep < least.msPerStep ? line : least));
	};
	const local = await using(open(), async (room) => ({ ...(await best(room, 0)), facts: room.facts }));
	const one = await using(open({ layers: [0], prefill: false, require: true }), (room) => best(room, 1));
	const all = await using(open({ layers: "all", prefill: false, require: true }), async (room) => {
		await warmUp(room, options);
		const lines: Measured[] = [];
		for (const batch of batches) lines.push(await run(room, local.facts.shape.layers, batch));
		return lines;
	});
	const steps = tokensOf(options);
	const measurements = [local, one, ...all].map((line) => reported(line, local.tokensPerSecond, steps));
	const [first, last] = [all.find(({ batch }) => batch === 1), all.at(-1)];
	return {
		model: local.facts.name,
		engineClass: local.facts.engineClass,
		layers: local.facts.shape.layers,
		rttMs,
		measurements,
		oneLayer: { addedMs: one.msPerStep - local.msPerStep, aimMs: rttMs * 1.15 },
		throughput:
			first === undefined || last === undefined || last === first
				? null
				: { batch: last.batch, ratio: last.tokensPerSecond / first.tokensPerSecond },
	};
}

interface Measured extends DecodeMeasurement {
	readonly remoteLayers: number;
	readonly requests: number;
	readonly worker: WorkerSnapshot | undefined;
}

function reported(line: Measured, localTokensPerSecond: number, steps: number): PathMeasurement {
	const { batch, msPerStep, tokensPerSecond, stepMs, remoteLayers, requests, worker } = line;
	const remote = remoteLayers > 0;
	const compute = remote ? (worker?.computeMsP50 ?? 0) : 0;
	return {
		batch,
		msPerStep,
		tokensPerSecond,
		stepMs,
		remoteLayers,
		roundTripsPerStep: requests / steps,
		layerMs: {
			wait: remote ? stepMs.waitMs / remoteLayers : 0,
			compute,
			wire: remote ? Math.max(0, (worker?.rttMsP50 ?? 0) - compute) : 0,
		},
		tokensPerSecondRatio: tokensPerSecond / localTokensPerSecond,
	};
}

function countedRemote(remote: Pick<RemoteExperts, "request">) {
	const counted = {
		requests: 0,
		remote: {
			request(...args: Parameters<RemoteExperts["request"]>) {
				counted.requests++;
				return remote.request(...args);
			},
		},
	};
	return counted;
}

async function using<T>(opening: Promise<DecodeRoom>, work: (room: DecodeRoom) => Promise<T>): Promise<T> {
	const room = await opening;
	try {
		return await work(room);
	} finally {
		await room.close();
	}
}
