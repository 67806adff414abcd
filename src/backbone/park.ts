import type { Socket } from "node:net";
import type { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import { noFailures, redialDelay } from "../protocol/backoff.ts";
import type { HubFacts } from "./hub-api.ts";
import { dialPark, type HubAddress } from "./park-dial.ts";

/** Sockets kept ready: as many workers may come at the same moment without waiting for a dial. */
export const parkedDefault = 4;

/** What happens to the parking, for logs and events. */
export type ParkEvent =
	| { readonly event: "parked"; readonly hub: HubFacts }
	| { readonly event: "park_failed"; readonly error: KvasirError; readonly retryMs: number };

export interface ParkingParts {
	readonly hub: HubAddress;
	readonly model: string;
	readonly count: number;
	readonly identity: KeyPair;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	/** Serves a parked socket on which a request begins to arrive. */
	readonly adopt: (socket: Socket) => void;
	readonly emit: (event: ParkEvent) => void;
}

export interface Parking {
	/** Sockets that wait at the hub now. */
	readonly parked: number;
	/** What the hub said of itself; null before the first connection. */
	readonly hub: HubFacts | null;
	/** Dials again now, whatever the backoff: SIGHUP, wake, a changed route. */
	redial(): void;
	close(): Promise<void>;
}

/** Keeps `count` raw sockets parked at the hub: one that is taken or lost is replaced at once, or by the protocol's backoff while the hub is away. */
export function startParking(parts: ParkingParts): Parking {
	const { clock, random, log, emit } = parts;
	const closing = new AbortController();
	const waiting = new Set<Socket>();
	let wake = new AbortController();
	let hub: HubFacts | null = null;
	let offsetSeconds = 0;

	async function dial() {
		const ledgerId = hub === null ? "" : Buffer.from(hub.ledgerId).toString("hex");
		const result = await dialPark({ ...parts, signal: closing.signal, ledgerId, offsetSeconds });
		if (result.kind !== "skew" || result.offsetSeconds === offsetSeconds) return result;
		({ offsetSeconds } = result);
		log.warn({ offsetSeconds }, "our clock differs from the hub's");
		return dialPark({ ...parts, signal: closing.signal, ledgerId, offsetSeconds });
	}

	async function keepOne(): Promise<void> {
		let backoff = noFailures;
		while (!closing.signal.aborted) {
			const result = await dial();
			if (result.kind === "parked") {
				hub = result.hub;
				emit({ event: "parked", hub });
				// A hub that takes the connection and drops it at once is a hub that is away.
				if (await untilTaken(result.socket)) {
					backoff = noFailures;
					continue;
				}
			}
			if (closing.signal.aborted) return;
			const retryAfterMs = result.kind === "failed" ? result.retryAfterMs : 0;
			const { delayMs, next } = redialDelay(backoff, random, retryAfterMs);
			backoff = next;
			if (result.kind === "failed") {
				log.warn({ error: result.error.message, retryMs: Math.round(delayMs) }, "parking failed");
				emit({ event: "park_failed", error: result.error, retryMs: delayMs });
			}
			const woken = wake.signal;
			await clock.sleep(delayMs, AbortSignal.any([closing.signal, woken])).catch(() => {});
			if (woken.aborted) backoff = noFailures;
		}
	}

	/** True once a worker's request begins to arrive and the socket was handed on; false when it was lost before. */
	function untilTaken(socket: Socket): Promise<boolean> {
		return new Promise((resolve) => {
			waiting.add(socket);
			const done = (taken: boolean) => {
				waiting.delete(socket);
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
				parts.adopt(socket);
				socket.resume();
			};
			socket.on("data", onData).on("end", onLost).on("close", onLost);
			if (socket.destroyed) onLost();
		});
	}

	const slots = Array.from({ length: parts.count }, keepOne);
	return {
		get parked() {
			return waiting.size;
		},
		get hub() {
			return hub;
		},
		redial() {
			wake.abort();
			wake = new AbortController();
		},
		async close() {
			closing.abort();
			for (const socket of waiting) socket.destroy();
			await Promise.all(slots);
		},
	};
}
