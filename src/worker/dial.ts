import { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { type Backoff, noFailures, redialDelay } from "../protocol/backoff.ts";
import { dialHandshake, type HelloFacts } from "../protocol/handshake.ts";
import type { Link } from "../protocol/link.ts";
import { closeCodes, type WelcomeBody } from "../protocol/messages.ts";
import type { Dialer } from "./dialer.ts";
import type { WorkerHome } from "./home.ts";
import type { ServeEnd, Serving } from "./serve.ts";
import type { WorkerEvent } from "./worker-event.ts";

export interface DialLoopParts {
	readonly dial: Dialer;
	/** The gateway's host: the name the backbone's key is remembered under. */
	readonly gateway: string;
	/** The one backbone to ask for and believe; null: whichever the gateway gives, as remembered or, the first time, as it comes. */
	readonly backbone: Uint8Array | null;
	/** True where `backbone` was vouched for: the gateway is asked for it by name, and its absence is no hurry. */
	readonly vouched: boolean;
	readonly identity: KeyPair;
	readonly hello: () => Omit<HelloFacts, "epoch" | "instance">;
	readonly home: WorkerHome;
	readonly serve: (link: Link, welcome: WelcomeBody) => Serving;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal: AbortSignal;
	readonly onEvent: (event: WorkerEvent) => void;
}

/** Keeps one link to one backbone: dials, serves, and dials again. */
export interface DialLoop {
	/** Dials at once, whatever it waits for (SIGHUP, wake, a route change). */
	redial(): void;
	/** Drains the session, if any, and stops. */
	drain(reason: string, graceMs: number): Promise<void>;
	readonly link: Link | null;
	/** Resolves when it was drained or aborted; rejects with what makes dialling again pointless. */
	readonly ended: Promise<void>;
}

/** Another process took our key's link: coming back at once would only take it from it again. */
const takenOverMs = 30_000;
/** A vouched backbone that is not parked now is asked for again after this. */
const vouchedRetryMs = 60_000;
/** A link that held this long worked: failures before it no longer count. */
const workedMs = 10_000;
/** At the first contact these end the command, because a person is there to read them; later they are only reasons to retry. */
const firstContactFatal = new Set(["auth", "not_admitted", "version", "clock_skew", "tls", "model_mismatch"]);

export function startDialLoop(parts: DialLoopParts): DialLoop {
	const { clock, random, signal, onEvent } = parts;
	let backoff: Backoff = noFailures;
	let epochAtLeast = 0;
	let staleInARow = 0;
	let connectedOnce = false;
	const stop = new AbortController();
	const halted = AbortSignal.any([signal, stop.signal]);
	let current: { readonly link: Link; readonly serving: Serving } | null = null;
	let wake = new AbortController();

	async function connect(): Promise<ServeEnd> {
		const epoch = await parts.home.nextEpoch(epochAtLeast);
		const expected = parts.backbone ?? (await parts.home.backboneOf(parts.gateway));
		onEvent({
			event: "connecting",
			gateway: parts.gateway,
			backbone: expected === null ? null : addressOf(expected),
		});
		const transport = await parts.dial({
			signal: halted,
			backbone: parts.vouched ? (parts.backbone ?? undefined) : undefined,
		});
		const { link, welcome, backboneKey } = await dialHandshake(transport, {
			identity: parts.identity,
			hello: { ...parts.hello(), epoch, instance: parts.home.instance },
			expectedBackbone: expected ?? undefined,
			clock,
			random,
			signal: halted,
		});
		if (expected === null) await parts.home.rememberBackbone(parts.gateway, backboneKey);
		if (halted.aborted) {
			link.close(closeCodes.goingAway, "going away");
			return { kind: "left" };
		}
		const startedMs = clock.monotonic();
		const serving = parts.serve(link, welcome);
		current = { link, serving };
		connectedOnce = true;
		const session = Buffer.from(welcome.session).toString("hex");
		onEvent({ event: "connected", backbone: addressOf(backboneKey), model: welcome.model.name, session });
		try {
			return await serving.ended;
		} finally {
			current = null;
			if (clock.monotonic() - startedMs >= workedMs) backoff = noFailures;
		}
	}

	/** Waits before the next dial; at once when told to redial. */
	async function pause(
		leastMs: number,
		how: Omit<Extract<WorkerEvent, { event: "disconnected" }>, "event" | "redialInMs">,
	) {
		const { delayMs, next } = redialDelay(backoff, random, leastMs);
		backoff = next;
		const redialInMs = wake.signal.aborted ? 0 : delayMs;
		onEvent({ event: "disconnected", ...how, redialInMs });
		await clock.sleep(redialInMs, AbortSignal.any([halted, wake.signal])).catch(() => {});
		if (wake.signal.aborted) {
			wake = new AbortController();
			backoff = noFailures;
		}
	}

	async function afterSession(end: ServeEnd): Promise<void> {
		if (end.kind === "left") return;
		if (end.kind === "bye") {
			if (end.retryAfterMs === 0) throw saidGoodbye(end.code, end.text);
			await pause(end.retryAfterMs, { code: end.code, message: end.text, hint: null });
		} else if (end.kind === "stale_epoch") {
			epochAtLeast = end.epoch + 1;
			const message = `epoch ${end.epoch} is in use`;
			// The home was restored from a backup, say: jump past it once, at once; if that does not help, as any failure.
			if (staleInARow++ === 0) wake.abort();
			await pause(0, { code: "stale_epoch", message, hint: null });
		} else {
			const takenOver = end.code === closeCodes.takenOver;
			await pause(takenOver ? takenOverMs : 0, {
				code: takenOver ? "taken_over" : end.code === closeCodes.deadPeer ? "dead_peer" : "closed",
				message: `the connection ended (${end.code}${end.reason === "" ? "" : ` ${end.reason}`})`,
				hint: takenOver ? "Another process serves under this home's key; give each a --home of its own" : null,
			});
		}
		if (end.kind !== "stale_epoch") staleInARow = 0;
	}

	async function afterFailure(error: unknown): Promise<void> {
		if (!(error instanceof KvasirError) || error.code === "key_changed") throw error;
		if (!connectedOnce && !parts.vouched && firstContactFatal.has(error.code)) throw error;
		const retryAfterMs = (error.facts.retryAfterMs as number | undefined) ?? 0;
		await pause(parts.vouched ? Math.max(vouchedRetryMs, retryAfterMs) : retryAfterMs, {
			code: error.code,
			message: error.message,
			hint: error.hint ?? null,
		});
	}

	async function run(): Promise<void> {
		while (!halted.aborted) {
			const outcome = await connect().then(
				(end) => ({ end }),
				(error: unknown) => ({ error }),
			);
			if (halted.aborted) return;
			if ("end" in outcome) await afterSession(outcome.end);
			else await afterFailure(outcome.error);
		}
	}

	const ended = run();
	signal.addEventListener("abort", () => current?.link.close(closeCodes.goingAway, "going away"), { once: true });
	return {
		redial() {
			wake.abort();
			current?.link.close(closeCodes.goingAway, "redial");
		},
		async drain(reason, graceMs) {
			stop.abort();
			await current?.serving.drain(reason, graceMs);
		},
		get link() {
			return current?.link ?? null;
		},
		ended,
	};
}

function saidGoodbye(code: string, text: string): KvasirError {
	if (code === "key_in_use") return new KvasirError("key_in_use", `Cannot serve: ${text}`);
	return new KvasirError("closed", `Cannot go on serving: the backbone said goodbye for good (${code}: ${text})`);
}
