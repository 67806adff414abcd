import type { Socket } from "node:net";
import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { type Backoff, noFailures, redialDelay } from "../../protocol/backoff.ts";
import type { HubFacts } from "../pay/hub-api.ts";
import { dialPark, type HubAddress, type Parked } from "./park-dial.ts";

/** Sockets kept ready: as many workers may come at the same moment without waiting for a dial. */
export const parkedDefault = 4;

/** What happens to the parking, for logs and events. */
export type ParkEvent =
	| { readonly event: "parked"; readonly hub: HubFacts }
	| { readonly event: "park_failed"; readonly error: KvasirError; readonly retryMs: number };

export interface ParkingParts {
	readonly hub: HubAddress;
	readonly model: string;
	/** How many sockets wait at the hub. */
	readonly count: number;
	readonly identity: KeyPair;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	/** Serves a parked socket on which a request begins to arrive. */
	readonly adopt: (socket: Socket) => void;
	readonly emit: (event: ParkEvent) => void;
}

/** Keeps raw sockets parked at the hub: one that is taken is replaced at once, one that is lost by the protocol's backoff. */
export class Parking {
	/** Resolves at the first connection; rejects where the first dial of each failed. */
	readonly first: Promise<void>;
	readonly #parts: ParkingParts;
	readonly #closing = new AbortController();
	readonly #waiting = new Set<Socket>();
	readonly #slots: readonly Promise<void>[];
	#wake = new AbortController();
	#hub: HubFacts | null = null;
	/** What the hub's clock is ahead of ours, seconds. */
	#offsetSeconds = 0;

	constructor(parts: ParkingParts) {
		this.#parts = parts;
		const firsts = Array.from({ length: parts.count }, () => this.#dial());
		this.first = Promise.any(firsts.map(throwFailed)).catch(({ errors }: AggregateError) => {
			throw errors[0];
		});
		// For those who ask: the others dial on.
		this.first.catch(() => {});
		this.#slots = firsts.map((first) => this.#keepOne(first));
	}

	/** Sockets that wait at the hub now. */
	get parked(): number {
		return this.#waiting.size;
	}

	/** What the hub said of itself; null before the first connection. */
	get hub(): HubFacts | null {
		return this.#hub;
	}

	/** Dials again now, whatever the backoff: SIGHUP, wake, a changed route. */
	redial(): void {
		this.#wake.abort();
		this.#wake = new AbortController();
	}

	async close(): Promise<void> {
		this.#closing.abort();
		for (const socket of this.#waiting) socket.destroy();
		await Promise.all(this.#slots);
	}

	async #keepOne(first: Promise<Parked>): Promise<void> {
		let backoff = noFailures;
		for (let dialled = first; !this.#closing.signal.aborted; dialled = this.#dial()) {
			const result = await dialled;
			if (result.kind === "parked") {
				this.#hub = result.hub;
				this.#parts.emit({ event: "parked", hub: result.hub });
				if (await this.#untilTaken(result.socket)) {
					backoff = noFailures;
					continue;
				}
			}
			if (this.#closing.signal.aborted) return;
			backoff = await this.#pause(result, backoff);
		}
	}

	async #dial(): Promise<Parked> {
		const dial = () =>
			dialPark({
				...this.#parts,
				signal: this.#closing.signal,
				ledgerId: this.#hub === null ? "" : Buffer.from(this.#hub.ledgerId).toString("hex"),
				offsetSeconds: this.#offsetSeconds,
			});
		const result = await dial();
		if (result.kind !== "skew" || result.offsetSeconds === this.#offsetSeconds) return result;
		this.#offsetSeconds = result.offsetSeconds;
		this.#parts.log.warn({ offsetSeconds: result.offsetSeconds }, "our clock differs from the hub's");
		return dial();
	}

	/** Waits before the next dial, unless woken; a hub that takes a connection and drops it at once is a hub that is away. */
	async #pause(result: Parked, backoff: Backoff): Promise<Backoff> {
		const { clock, random, log, emit } = this.#parts;
		const { delayMs, next } = redialDelay(backoff, random, result.kind === "failed" ? result.retryAfterMs : 0);
		if (result.kind === "failed") {
			log.warn({ error: result.error.message, retryMs: Math.round(delayMs) }, "parking failed");
			emit({ event: "park_failed", error: result.error, retryMs: delayMs });
		}
		const woken = this.#wake.signal;
		await clock.sleep(delayMs, AbortSignal.any([this.#closing.signal, woken])).catch(() => {});
		return woken.aborted ? noFailures : next;
	}

	/** True once a worker's request begins to arrive and the socket was handed on; false when it was lost before. */
	#untilTaken(socket: Socket): Promise<boolean> {
		return new Promise((resolve) => {
			this.#waiting.add(socket);
			const done = (taken: boolean) => {
				this.#waiting.delete(socket);
				socket.removeListener("data", onData).removeListener("end", onLost).removeListener("close", onLost);
				resolve(taken);
			};
			const onLost = () => {
				socket.destroy();
				done(false);
			};
			const onData = (first: Buffer) => {
				socket.pause();
				socket.unshift(first);
				done(true);
				this.#parts.adopt(socket);
				socket.resume();
			};
			socket.on("data", onData).on("end", onLost).on("close", onLost);
			if (socket.destroyed) onLost();
		});
	}
}

async function throwFailed(dialled: Promise<Parked>): Promise<void> {
	const result = await dialled;
	if (result.kind === "failed") throw result.error;
	if (result.kind === "skew") throw new KvasirError("clock_skew", "Cannot park at the hub: it takes none of our times");
}
