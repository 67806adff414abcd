import type { Socket } from "node:net";
import type { Clock } from "../../io/clock.ts";
import { spliceLimits } from "../limits.ts";

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

interface Waiter {
	readonly wish: BackboneWish;
	settle(result: BackboneSocket | NoBackbone): void;
}

/** The sockets that backbones keep ready here; each carries one request and is then gone. */
export class ParkedSockets implements BackboneSource {
	readonly #clock: Clock;
	/** Base58 keys by rank: the one first on the hub's list serves those who do not ask for another. */
	readonly #order: readonly string[];
	/** With what ends each one's parking. */
	readonly #parked = new Map<BackboneSocket, () => void>();
	readonly #waiters = new Set<Waiter>();
	#closed = false;

	constructor(clock: Clock, order: readonly string[]) {
		this.#clock = clock;
		this.#order = order;
	}

	/** False when this backbone has parked as many as it may. */
	mayAdd(backbone: string): boolean {
		const held = [...this.#parked.keys()].filter((one) => one.backbone === backbone).length;
		return !this.#closed && held < spliceLimits.parkedPerBackboneMax;
	}

	/** Keeps a socket until it is taken or ends. */
	add(one: BackboneSocket): void {
		const { socket } = one;
		// A parked socket says nothing and does not end; whichever it did, it is of no use. Reading notices both.
		const breach = () => {
			this.#release(one);
			socket.destroy();
		};
		socket.on("data", breach).on("end", breach).on("close", breach);
		this.#parked.set(one, () => socket.off("data", breach).off("end", breach).off("close", breach));
		for (const waiter of this.#waiters) {
			const found = this.#take(waiter.wish);
			if (found === null) continue;
			waiter.settle(found);
			return;
		}
	}

	/** A socket for this wish, at once or within 5 s. */
	async take(wish: BackboneWish, signal: AbortSignal): Promise<BackboneSocket | NoBackbone> {
		const found = this.#take(wish);
		if (found !== null) return found;
		if (this.#closed) return "closing";
		if (this.#waiters.size >= spliceLimits.waitingMax) return "waiting_full";
		return new Promise((resolve) => {
			const waiter: Waiter = {
				wish,
				settle: (result) => {
					this.#waiters.delete(waiter);
					cancel();
					signal.removeEventListener("abort", abort);
					resolve(result);
				},
			};
			const cancel = this.#clock.after(spliceLimits.parkedWaitMs, () => waiter.settle("none_parked"));
			const abort = () => waiter.settle("closing");
			this.#waiters.add(waiter);
			signal.addEventListener("abort", abort, { once: true });
			if (signal.aborted) abort();
		});
	}

	/** What is parked now, by backbone and model. */
	counts(): readonly ParkedCount[] {
		const counts = new Map<string, ParkedCount>();
		for (const { backbone, model } of this.#parked.keys()) {
			const name = `${backbone} ${model}`;
			counts.set(name, { backbone, model, parked: (counts.get(name)?.parked ?? 0) + 1 });
		}
		return [...counts.values()];
	}

	/** Workers that wait. */
	get waiting(): number {
		return this.#waiters.size;
	}

	/** Sends all who wait away and closes what is parked. */
	close(): void {
		this.#closed = true;
		for (const waiter of this.#waiters) waiter.settle("closing");
		for (const one of this.#parked.keys()) {
			this.#release(one);
			one.socket.destroy();
		}
	}

	/** The best socket for a wish, no longer parked; null where there is none. */
	#take({ model, backbone }: BackboneWish): BackboneSocket | "model_needed" | null {
		const wanted = [...this.#parked.keys()].filter(
			(one) => (backbone === "" || one.backbone === backbone) && (model === "" || one.model === model),
		);
		if (model === "" && new Set(wanted.map((one) => one.model)).size > 1) return "model_needed";
		// The newest of the best: a connection that died unnoticed is more likely an old one.
		const best = wanted.reduce<BackboneSocket | null>(
			(found, one) => (found !== null && this.#rank(found) < this.#rank(one) ? found : one),
			null,
		);
		if (best !== null) this.#release(best);
		return best;
	}

	#release(one: BackboneSocket): void {
		this.#parked.get(one)?.();
		this.#parked.delete(one);
	}

	#rank({ backbone }: BackboneSocket): number {
		const at = this.#order.indexOf(backbone);
		return at < 0 ? this.#order.length : at;
	}
}
