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
import { byeEnding, type Ending, endingOf, saidGoodbye } from "./link-endings.ts";
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

/** Another process took our key's link: coming back at once would only take it from it again. */
const takenOverMs = 30_000;
/** A vouched backbone that is not parked now is asked for again after this. */
const vouchedRetryMs = 60_000;
/** A link that held this long worked: failures before it no longer count. */
const workedMs = 10_000;
/** At the first contact these end the command, because a person is there to read them; later they are only reasons to retry. */
const firstContactFatal = new Set([
	"auth",
	"not_admitted",
	"version",
	"clock_skew",
	"tls",
	"model_mismatch",
	"model_missing",
	"usage",
]);

/** Keeps one link to one backbone: dials, serves, and dials again. */
export class DialLoop {
	/** Resolves when it was drained or aborted; rejects with what makes dialling again pointless. */
	readonly ended: Promise<void>;
	readonly #parts: DialLoopParts;
	readonly #stop = new AbortController();
	readonly #halted: AbortSignal;
	#wake = new AbortController();
	#backoff: Backoff = noFailures;
	#epochAtLeast = 0;
	#staleInARow = 0;
	#connectedOnce = false;
	#current: { readonly link: Link; readonly serving: Serving } | null = null;

	constructor(parts: DialLoopParts) {
		this.#parts = parts;
		this.#halted = AbortSignal.any([parts.signal, this.#stop.signal]);
		parts.signal.addEventListener("abort", () => this.#current?.link.close(closeCodes.goingAway, "going away"), {
			once: true,
		});
		this.ended = this.#run();
	}

	get link(): Link | null {
		return this.#current?.link ?? null;
	}

	/** Dials at once, whatever it waits for (SIGHUP, wake, a route change). */
	redial(): void {
		this.#wake.abort();
		this.#current?.link.close(closeCodes.goingAway, "redial");
	}

	/** Drains the session, if any, and stops. */
	async drain(reason: string, graceMs: number): Promise<void> {
		this.#stop.abort();
		await this.#current?.serving.drain(reason, graceMs);
	}

	async #run(): Promise<void> {
		while (!this.#halted.aborted) {
			const outcome = await this.#connect().then(
				(end) => ({ end }),
				(error: unknown) => ({ error }),
			);
			if (this.#halted.aborted) return;
			if ("end" in outcome) await this.#afterSession(outcome.end);
			else await this.#afterFailure(outcome.error);
		}
	}

	/** One connection, from the dial to its end. */
	async #connect(): Promise<ServeEnd> {
		const { home, gateway, backbone, clock, random, onEvent } = this.#parts;
		const epoch = await home.nextEpoch(this.#epochAtLeast);
		const expected = backbone ?? (await home.backboneOf(gateway));
		onEvent({ event: "connecting", gateway, backbone: expected === null ? null : addressOf(expected) });
		const byName = this.#parts.vouched ? (backbone ?? undefined) : undefined;
		const transport = await this.#parts.dial({ signal: this.#halted, backbone: byName });
		const { link, welcome, backboneKey } = await dialHandshake(transport, {
			identity: this.#parts.identity,
			hello: { ...this.#parts.hello(), epoch, instance: home.instance },
			expectedBackbone: expected ?? undefined,
			clock,
			random,
			signal: this.#halted,
		});
		if (expected === null) await home.rememberBackbone(gateway, backboneKey);
		if (this.#halted.aborted) {
			link.close(closeCodes.goingAway, "going away");
			return { kind: "left" };
		}
		return this.#serve(link, welcome);
	}

	async #serve(link: Link, welcome: WelcomeBody): Promise<ServeEnd> {
		const { clock, onEvent, serve } = this.#parts;
		const startedMs = clock.monotonic();
		const serving = serve(link, welcome);
		this.#current = { link, serving };
		this.#connectedOnce = true;
		const session = Buffer.from(welcome.session).toString("hex");
		onEvent({ event: "connected", backbone: addressOf(link.peer), model: welcome.model.name, session });
		try {
			return await serving.ended;
		} finally {
			this.#current = null;
			if (clock.monotonic() - startedMs >= workedMs) this.#backoff = noFailures;
		}
	}

	async #afterSession(end: ServeEnd): Promise<void> {
		if (end.kind === "left") return;
		if (end.kind !== "stale_epoch") this.#staleInARow = 0;
		if (end.kind === "bye") {
			if (end.retryAfterMs === 0) throw saidGoodbye(end.code, end.text);
			await this.#pause(end.retryAfterMs, byeEnding(end.code, end.text));
		} else if (end.kind === "stale_epoch") {
			this.#epochAtLeast = end.epoch + 1;
			// The home was restored from a backup, say: jump past it once, at once; if that does not help, as any failure.
			if (this.#staleInARow++ === 0) this.#wake.abort();
			await this.#pause(0, { code: "stale_epoch", message: `epoch ${end.epoch} is in use`, hint: null, reason: null });
		} else {
			const takenOver = end.code === closeCodes.takenOver;
			await this.#pause(takenOver ? takenOverMs : 0, endingOf(end.code, end.reason));
		}
	}

	async #afterFailure(error: unknown): Promise<void> {
		const { vouched } = this.#parts;
		if (!(error instanceof KvasirError) || error.code === "key_changed") throw error;
		if (!this.#connectedOnce && !vouched && firstContactFatal.has(error.code)) throw error;
		const retryAfterMs = (error.facts.retryAfterMs as number | undefined) ?? 0;
		const { code, message, hint } = error;
		await this.#pause(vouched ? Math.max(vouchedRetryMs, retryAfterMs) : retryAfterMs, {
			code,
			message,
			hint: hint ?? null,
			reason: (error.facts.reason as string | undefined) ?? null,
		});
	}

	/** Waits before the next dial; not at all when told to redial. */
	async #pause(leastMs: number, ending: Ending): Promise<void> {
		const { clock, random, onEvent } = this.#parts;
		const { delayMs, next } = redialDelay(this.#backoff, random, leastMs);
		this.#backoff = next;
		const redialInMs = this.#wake.signal.aborted ? 0 : delayMs;
		onEvent({ event: "disconnected", ...ending, redialInMs });
		await clock.sleep(redialInMs, AbortSignal.any([this.#halted, this.#wake.signal])).catch(() => {});
		if (!this.#wake.signal.aborted) return;
		this.#wake = new AbortController();
		this.#backoff = noFailures;
	}
}
