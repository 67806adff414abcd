import type { Socket } from "node:net";
import type { Clock } from "../io/clock.ts";

/** Why a tied pair came apart. */
export type TieEnd = "ended" | "reset" | "idle" | "half_closed" | "closed";

export interface TieOptions {
	readonly clock: Clock;
	/** Neither direction moved a byte for this long. */
	readonly idleMs: number;
	/** One direction ended and the other did not for this long. */
	readonly halfClosedMs: number;
}

/**
 * Ties two raw sockets: bytes both ways with backpressure, an end passed on as an end, a reset as a reset. Resolves when both
 * are closed, with the first cause. Memory is bounded by the two streams' high-water marks: a side that does not read stops
 * the other from being read, and after `idleMs` without progress both go.
 */
export function tie(a: Socket, b: Socket, { clock, idleMs, halfClosedMs }: TieOptions): Promise<TieEnd> {
	let resolve: (end: TieEnd) => void = () => {};
	const tied = new Promise<TieEnd>((settle) => {
		resolve = settle;
	});
	let cause: TieEnd | null = null;
	let open = 2;
	let cancelHalfClosed: (() => void) | null = null;

	function cut(reason: TieEnd): void {
		cause ??= reason;
		a.destroy();
		b.destroy();
	}

	function watch(self: Socket, other: Socket): void {
		self.setNoDelay(true);
		self.setKeepAlive(true, 30_000);
		self.removeAllListeners("timeout");
		self.setTimeout(idleMs, () => cut("idle"));
		self.on("error", () => cut("reset"));
		self.once("end", () => {
			cancelHalfClosed ??= clock.after(halfClosedMs, () => cut("half_closed"));
		});
		self.once("close", () => {
			// Closed before both directions ended: what is left of the other side has nobody to talk to.
			if (!self.readableEnded || !other.readableEnded) cut("reset");
			open -= 1;
			if (open > 0) return;
			cancelHalfClosed?.();
			resolve(cause ?? "ended");
		});
	}

	if (a.destroyed || b.destroyed) {
		for (const socket of [a, b]) {
			socket.on("error", () => {});
			socket.destroy();
		}
		return Promise.resolve("reset");
	}
	watch(a, b);
	watch(b, a);
	a.pipe(b);
	b.pipe(a);
	return tied;
}
