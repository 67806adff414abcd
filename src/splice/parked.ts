import type { Socket } from "node:net";
import type { Clock } from "../io/clock.ts";
import { spliceLimits } from "./limits.ts";

/** Which backbone a worker wants; an empty field leaves the choice to the hub. */
export interface BackboneWish {
	readonly model: string;
	readonly backbone: string;
}

/** A socket to a backbone, for one request, and whose it is. */
export interface BackboneSocket {
	readonly socket: Socket;
	/** Base58; empty for a dialled backbone, whose key the hub does not know. */
	readonly backbone: string;
	readonly model: string;
}

/** Why there is no socket: none came in time, too many wait, several models and none was named, or the hub closes. */
export type NoBackbone = "none_parked" | "waiting_full" | "model_needed" | "closing";

/** Where sockets to backbones come from: parked by them, or dialled by the hub. */
export interface BackboneSource {
	take(wish: BackboneWish, signal: AbortSignal): Promise<BackboneSocket | NoBackbone>;
}

/** What is parked now, for metrics and status. */
export interface ParkedCount {
	readonly backbone: string;
	readonly model: string;
	readonly parked: number;
}

/** The sockets that backbones keep ready here; each carries one request and is then gone. */
export interface ParkedSockets extends BackboneSource {
	/** False when this backbone has parked as many as it may. */
	mayAdd(backbone: string): boolean;
	/** Keeps a socket until it is taken or ends. */
	add(parked: BackboneSocket): void;
	counts(): readonly ParkedCount[];
	readonly waiting: number;
	close(): void;
}

interface Waiter {
	readonly wish: BackboneWish;
	settle(result: BackboneSocket | NoBackbone): void;
}

/** `order` ranks backbones: the one first on the hub's list serves those who do not ask for another. */
export function createParkedSockets(clock: Clock, order: readonly string[]): ParkedSockets {
	const parked = new Set<BackboneSocket>();
	const waiters = new Set<Waiter>();
	let closed = false;

	const rank = ({ backbone }: BackboneSocket) => {
		const at = order.indexOf(backbone);
		return at < 0 ? order.length : at;
	};

	function pick({ model, backbone }: BackboneWish): BackboneSocket | "model_needed" | null {
		const wanted = [...parked].filter(
			(one) => (backbone === "" || one.backbone === backbone) && (model === "" || one.model === model),
		);
		if (model === "" && new Set(wanted.map((one) => one.model)).size > 1) return "model_needed";
		// The newest of the best: a connection that died unnoticed is more likely an old one.
		return wanted.reduce<BackboneSocket | null>((best, one) => (best && rank(best) < rank(one) ? best : one), null);
	}

	function release(one: BackboneSocket): void {
		parked.delete(one);
		one.socket.off("data", breach).off("end", breach).off("close", breach);
	}

	/** A parked socket says nothing and does not end; whichever it did, it is of no use. */
	function breach(this: Socket): void {
		for (const one of parked) if (one.socket === this) release(one);
		this.destroy();
	}

	return {
		mayAdd(key) {
			const held = [...parked].filter(({ backbone }) => backbone === key).length;
			return !closed && held < spliceLimits.parkedPerBackboneMax;
		},
		add(one) {
			parked.add(one);
			// Reading, so that an end is noticed while nobody needs the socket.
			one.socket.on("data", breach).on("end", breach).on("close", breach);
			for (const waiter of waiters) {
				const found = pick(waiter.wish);
				if (found === null) continue;
				if (typeof found === "object") release(found);
				waiter.settle(found);
				break;
			}
		},
		async take(wish, signal) {
			const found = pick(wish);
			if (found !== null) {
				if (typeof found === "object") release(found);
				return found;
			}
			if (closed) return "closing";
			if (waiters.size >= spliceLimits.waitingMax) return "waiting_full";
			return new Promise((resolve) => {
				const waiter: Waiter = {
					wish,
					settle(result) {
						waiters.delete(waiter);
						cancel();
						signal.removeEventListener("abort", abort);
						resolve(result);
					},
				};
				const cancel = clock.after(spliceLimits.parkedWaitMs, () => waiter.settle("none_parked"));
				const abort = () => waiter.settle("closing");
				waiters.add(waiter);
				signal.addEventListener("abort", abort, { once: true });
				if (signal.aborted) abort();
			});
		},
		counts() {
			const counts = new Map<string, ParkedCount>();
			for (const { backbone, model } of parked) {
				const name = `${backbone} ${model}`;
				counts.set(name, { backbone, model, parked: (counts.get(name)?.parked ?? 0) + 1 });
			}
			return [...counts.values()];
		},
		get waiting() {
			return waiters.size;
		},
		close() {
			closed = true;
			for (const waiter of waiters) waiter.settle("closing");
			for (const one of parked) {
				release(one);
				one.socket.destroy();
			}
		},
	};
}
