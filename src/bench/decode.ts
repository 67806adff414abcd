import type { DecodeSettings } from "../backbone/decode/decode-messages.ts";
import { type DecodeRoom, openDecodeRoom } from "../backbone/decode/decode-room.ts";
import { greedy } from "../backbone/decode/sampler.ts";
import type { SchedulerOptions } from "../backbone/decode/scheduler.ts";
import type { StepTimes } from "../backbone/decode/step-times.ts";
import type { RemoteExperts } from "../backbone/remote.ts";
import type { Clock } from "../io/clock.ts";

export interface DecodeBenchOptions {
	/** Model, engine, threads; nothing of it is remote. */
	readonly settings: Omit<DecodeSettings, "remote">;
	readonly prompt: readonly number[];
	/** Tokens generated for each text. @default 128 */
	readonly tokens?: number;
	/** Texts decoded together. @default [1] */
	readonly batches?: readonly number[];
	/** Also measure with the experts of all layers asked of these workers. */
	readonly remote?: Pick<RemoteExperts, "request">;
	readonly clock: Pick<Clock, "monotonic">;
	readonly signal?: AbortSignal;
}

/** One measured line. */
export interface DecodeMeasurement {
	readonly experts: "local" | "remote";
	/** Texts decoded together. */
	readonly batch: number;
	/** A step decodes one token of each text. */
	readonly msPerStep: number;
	readonly tokensPerSecond: number;
	/** Where a step's time goes. */
	readonly stepMs: StepTimes;
}

export interface DecodeBench {
	readonly model: string;
	readonly engineClass: string;
	readonly threads: number;
	readonly promptTokens: number;
	readonly prefillTokensPerSecond: number;
	readonly measurements: readonly DecodeMeasurement[];
}

/** Measures decoding: milliseconds a step and where they go, for several batch sizes, local and (when there is a swarm) remote. */
export async function benchDecode(options: DecodeBenchOptions): Promise<DecodeBench> {
	const { prompt, clock, remote } = options;
	const settings = { ...options.settings, scheduler: allAtOnce(options.batches ?? [1]) };
	const measurements: DecodeMeasurement[] = [];
	const local = await openDecodeRoom(settings);
	try {
		await warmUp(local, options);
		const startMs = clock.monotonic();
		await generate(local, options, 1, 1);
		const prefillMs = clock.monotonic() - startMs;
		for (const batch of options.batches ?? [1]) measurements.push(await measureDecode(local, options, "local", batch));
		if (remote) measurements.push(...(await measureRemote({ ...options, settings }, remote)));
		return {
			model: local.facts.name,
			engineClass: local.facts.engineClass,
			threads: settings.threads ?? 1,
			promptTokens: prompt.length,
			prefillTokensPerSecond: (1000 * prompt.length) / prefillMs,
			measurements,
		};
	} finally {
		await local.close();
	}
}

/** Room for all texts of the largest batch. */
export function allAtOnce(batches: readonly number[]): SchedulerOptions {
	const most = Math.max(16, ...batches);
	return { activeMost: most, waitingMost: most };
}

async function measureRemote(
	options: DecodeBenchOptions,
	remote: Pick<RemoteExperts, "request">,
): Promise<DecodeMeasurement[]> {
	const room = await openDecodeRoom(
		{ ...options.settings, remote: { layers: "all", prefill: false, require: true } },
		remote,
	);
	try {
		await warmUp(room, options);
		const measurements: DecodeMeasurement[] = [];
		for (const batch of options.batches ?? [1]) measurements.push(await measureDecode(room, options, "remote", batch));
		return measurements;
	} finally {
		await room.close();
	}
}

/** Runs `batch` equal texts twice, with one token and with all of them: the difference is decode steps alone. */
export async function measureDecode(
	room: DecodeRoom,
	options: DecodeBenchOptions,
	experts: "local" | "remote",
	batch: number,
): Promise<DecodeMeasurement> {
	const { clock } = options;
	const tokens = tokensOf(options);
	const timed = async (count: number) => {
		const before = { atMs: clock.monotonic(), times: room.report().times };
		await generate(room, options, batch, count);
		return { tookMs: clock.monotonic() - before.atMs, times: difference(room.report().times, before.times) };
	};
	const prefill = await timed(1);
	const whole = await timed(tokens + 1);
	const msPerStep = (whole.tookMs - prefill.tookMs) / tokens;
	const stepMs = difference(whole.times, prefill.times, tokens);
	return { experts, batch, msPerStep, tokensPerSecond: (1000 * batch) / msPerStep, stepMs };
}

/** Loads the experts that the measured texts need: decoding is greedy, so that they need the same ones again. */
export function warmUp(room: DecodeRoom, options: DecodeBenchOptions): Promise<void> {
	return generate(room, options, 1, tokensOf(options) + 1);
}

/** Decode steps of one measurement. */
export function tokensOf({ tokens = 128 }: Pick<DecodeBenchOptions, "tokens">): number {
	return tokens;
}

async function generate(
	room: DecodeRoom,
	options: DecodeBenchOptions,
	batch: number,
	maxTokens: number,
): Promise<void> {
	const { prompt, signal } = options;
	const request = { prompt, maxTokens, sampling: greedy };
	const texts = Array.from({ length: batch }, () => room.scheduler.generate(request, signal ? { signal } : {}));
	await Promise.all(texts);
	signal?.throwIfAborted();
}

/** (after - before) / steps, each time on its own. */
function difference(after: StepTimes, before: StepTimes, steps = 1): StepTimes {
	const names = Object.keys(after) as (keyof StepTimes)[];
	return Object.fromEntries(names.map((name) => [name, (after[name] - before[name]) / steps])) as unknown as StepTimes;
}
