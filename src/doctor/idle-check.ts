import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { limits } from "../protocol/limits.ts";
import { closeCodes } from "../protocol/messages.ts";
import type { Dialer } from "../worker/dialer.ts";
import type { Check, Finding } from "./check.ts";

/** How long a link that was idle may take to say that it is still there. */
const answerMsDefault = 10_000;
/** A heartbeat may be late by this much before a path counts as too short for it. */
const marginMs = 3_000;
const dialMsMax = 20_000;

export interface IdleParts {
	/** Links to the gateway on which nobody speaks (`/v1/idle`). */
	readonly dial: Dialer;
	readonly clock: Clock;
	/** One link for each, from `idleTimes`. */
	readonly idleMs: readonly number[];
	/** Between two pings of a worker's link. @default the protocol's */
	readonly heartbeatMs?: number;
	readonly answerMs?: number;
}

/** What became of a link that was left idle: it was cut after a while, or was found silent when it was asked. */
type Idled = { readonly idleMs: number } & (
	| { readonly end: "held" | "silent" }
	| { readonly end: "cut"; readonly afterMs: number }
	| { readonly end: "refused"; readonly error: KvasirError }
);

/**
 * Times to leave links idle for, up to the longest: at most six links, as a key may have eight and a worker of this home may hold some.
 *
 * @param seconds the longest
 */
export function idleTimes(seconds: number): number[] {
	const steps = seconds > 120 ? [15, 30, 60, 120, 240] : [15, 30, 45, 60, 90];
	return [...steps.filter((step) => step < seconds), seconds].map((step) => step * 1000);
}

/** Leaves several links idle at once, each for another time: for how long does the path leave one open, and is that enough for the heartbeat? */
export function idleCheck(parts: IdleParts): Check {
	const { idleMs, answerMs = answerMsDefault, heartbeatMs = limits.heartbeatMs } = parts;
	return {
		name: "idle",
		limitMs: Math.max(...idleMs) + answerMs + dialMsMax,
		async run(signal) {
			const all = await Promise.all(idleMs.map((ms) => leaveIdle(ms, { ...parts, answerMs }, signal)));
			return findingOf(all, heartbeatMs);
		},
	};
}

async function leaveIdle(
	idleMs: number,
	{ dial, clock, answerMs }: IdleParts & { answerMs: number },
	signal: AbortSignal,
): Promise<Idled> {
	let transport: Awaited<ReturnType<Dialer>>;
	try {
		transport = await dial({ signal });
	} catch (error) {
		if (error instanceof KvasirError) return { idleMs, end: "refused", error };
		throw error;
	}
	const startMs = clock.monotonic();
	const within = (ms: number) => Promise.race([transport.ended, clock.sleep(ms, signal).then(() => null)]);
	try {
		if ((await within(idleMs)) !== null) return { idleMs, end: "cut", afterMs: clock.monotonic() - startMs };
		// Any byte: the gateway answers it with a goodbye.
		transport.send([Uint8Array.of(0)]);
		const end = await within(answerMs);
		return { idleMs, end: end?.code === closeCodes.normal ? "held" : "silent" };
	} finally {
		transport.terminate();
	}
}

function findingOf(all: readonly Idled[], heartbeatMs: number): Finding {
	const refused = all.flatMap((one) => (one.end === "refused" ? [one.error] : []));
	if (refused.length === all.length) throw refused[0];
	const cutsMs = all.flatMap((one) => (one.end === "cut" ? [one.afterMs] : one.end === "silent" ? [one.idleMs] : []));
	const cutMs = Math.min(...cutsMs);
	const heldMs = Math.max(0, ...all.flatMap((one) => (one.end === "held" && one.idleMs < cutMs ? [one.idleMs] : [])));
	const left = refused.length === 0 ? "" : `; ${refused.length} of ${all.length} links were refused`;
	if (cutsMs.length === 0) return { state: "ok", found: `a link idle for ${seconds(heldMs)} is not cut${left}` };
	const silent = all.every(({ end }) => end !== "cut") ? ", and nobody is told" : "";
	const held = heldMs === 0 ? "" : `, for ${seconds(heldMs)} it is not`;
	const found = `a link idle for ${seconds(cutMs)} is cut${silent}${held}${left}`;
	if (cutMs > heartbeatMs + marginMs) {
		return { state: "ok", found: `${found}; the heartbeat of ${seconds(heartbeatMs)} keeps a worker's open` };
	}
	return {
		state: "failed",
		found,
		hint: `A proxy or firewall on the way ends idle connections before the heartbeat of ${seconds(heartbeatMs)}, which the backbone sets: raise its timeout to 60 s`,
	};
}

function seconds(ms: number): string {
	return `${ms < 10_000 ? Number((ms / 1000).toFixed(1)) : Math.round(ms / 1000)} s`;
}
