import type { Clock } from "../io/clock.ts";
import { createInbox } from "./inbox.ts";
import type { LinkEnd, Transport } from "./link.ts";
import { closeCodes } from "./messages.ts";

/** What happens to a message on its way; undefined: it arrives at once. */
export interface Passage {
	/** Later messages never overtake it. */
	readonly delayMs?: number;
	readonly drop?: boolean;
	/** Arrives instead. */
	readonly replace?: Uint8Array;
}

export interface MemoryTransportOptions {
	/** Needed where a passage delays. */
	readonly clock?: Clock;
	readonly passage?: (message: Uint8Array, from: "a" | "b") => Passage | undefined;
}

/** Two transports joined in memory: links without sockets, for tests, simulations and a worker in the same process. */
export function memoryTransportPair({ clock, passage }: MemoryTransportOptions = {}): [Transport, Transport] {
	const a = memoryEnd();
	const b = memoryEnd();
	const busyUntilMs = { a: 0, b: 0 };

	function carry(message: Uint8Array, from: "a" | "b"): void {
		const to = from === "a" ? b : a;
		const fate = passage?.(message, from);
		if (fate?.drop) return;
		const arriving = fate?.replace ?? message;
		if (clock === undefined) {
			queueMicrotask(() => to.receive(arriving));
			return;
		}
		const now = clock.monotonic();
		busyUntilMs[from] = Math.max(busyUntilMs[from], now + (fate?.delayMs ?? 0));
		const waitMs = busyUntilMs[from] - now;
		if (waitMs === 0) queueMicrotask(() => to.receive(arriving));
		else clock.after(waitMs, () => to.receive(arriving));
	}

	/** Ends both sides; the farewell arrives after the messages before it. */
	function end(from: "a" | "b", mine: LinkEnd, theirs: LinkEnd): void {
		const [near, far] = from === "a" ? [a, b] : [b, a];
		near.finish(mine);
		const waitMs = clock === undefined ? 0 : Math.max(0, busyUntilMs[from] - clock.monotonic());
		if (clock === undefined || waitMs === 0) queueMicrotask(() => far.finish(theirs));
		else clock.after(waitMs, () => far.finish(theirs));
	}

	const lost: LinkEnd = { code: closeCodes.lost, reason: "" };
	const transportOf = (side: "a" | "b"): Transport => {
		const { inbox, ended, state } = side === "a" ? a : b;
		return {
			send(parts) {
				if (!state.finished) carry(joined(parts), side);
			},
			get onMessage() {
				return inbox.handler;
			},
			set onMessage(handler) {
				inbox.handler = handler;
			},
			ended,
			get bytesRead() {
				return state.bytesRead;
			},
			bytesPending: 0,
			close: (code, reason) => end(side, { code, reason }, { code, reason }),
			terminate: () => end(side, lost, lost),
		};
	};
	return [transportOf("a"), transportOf("b")];
}

function memoryEnd() {
	let resolve: (how: LinkEnd) => void;
	const ended = new Promise<LinkEnd>((settle) => {
		resolve = settle;
	});
	const inbox = createInbox<Uint8Array>();
	const state = { finished: false, bytesRead: 0 };
	function finish(how: LinkEnd): void {
		if (state.finished) return;
		state.finished = true;
		resolve(how);
	}
	function receive(message: Uint8Array): void {
		if (state.finished) return;
		state.bytesRead += message.length;
		if (!inbox.push(message, message.length)) finish({ code: closeCodes.tooBig, reason: "too many messages unread" });
	}
	return { ended, inbox, state, finish, receive };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
	const message = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0));
	let offset = 0;
	for (const part of parts) {
		message.set(part, offset);
		offset += part.length;
	}
	return message;
}
