import type { Clock } from "../io/clock.ts";
import { limits } from "./limits.ts";

export interface HeartbeatOptions {
	readonly clock: Clock;
	readonly heartbeatMs: number;
	readonly deadMs: number;
	/** Grows with every byte that arrives: that, not a whole message, is a sign of life. */
	readonly bytesRead: () => number;
	readonly ping: (sequence: number, senderTimeUs: number) => void;
	/** Called once, when nothing arrived for `deadMs`. */
	readonly dead: () => void;
}

export interface Heartbeat {
	/** Something was sent: not idle. */
	sent(): void;
	pong(sequence: number): void;
	/** The last round trip, milliseconds; null before the first. */
	readonly roundTripMs: number | null;
	stop(): void;
}

/** Pings at the start and when idle, measures round trips by our own clock, and notices a dead peer (wire.md section 3). */
export function startHeartbeat({ clock, heartbeatMs, deadMs, bytesRead, ping, dead }: HeartbeatOptions): Heartbeat {
	const tickMs = Math.min(heartbeatMs, deadMs) / 4;
	const pingsSentMs = new Map<number, number>();
	let sequence = 0;
	let roundTripMs: number | null = null;
	let sentMs = clock.monotonic();
	let lastBytes = bytesRead();
	let readMs = sentMs;
	let tickedMs = sentMs;
	let cancel: () => void = () => {};
	let stopped = false;

	function sendPing(): void {
		const nowMs = clock.monotonic();
		pingsSentMs.set(++sequence, nowMs);
		for (const old of pingsSentMs.keys()) {
			if (pingsSentMs.size <= limits.pingsOutstanding) break;
			pingsSentMs.delete(old);
		}
		ping(sequence, Math.round(nowMs * 1000));
	}

	function tick(): void {
		const nowMs = clock.monotonic();
		if (bytesRead() !== lastBytes) {
			lastBytes = bytesRead();
			readMs = nowMs;
		}
		// A gap in our own timers (the machine slept) says nothing about the peer yet: ask, and give it a short while to answer.
		if (nowMs - tickedMs > deadMs) {
			readMs = Math.max(readMs, nowMs - deadMs + Math.min(limits.wakeMs, deadMs / 2));
			sendPing();
		}
		tickedMs = nowMs;
		if (nowMs - readMs >= deadMs) {
			stop();
			dead();
			return;
		}
		if (nowMs - sentMs >= heartbeatMs) sendPing();
		if (!stopped) cancel = clock.after(tickMs, tick);
	}

	function stop(): void {
		stopped = true;
		cancel();
	}

	cancel = clock.after(0, () => {
		sendPing();
		if (!stopped) cancel = clock.after(tickMs, tick);
	});
	return {
		sent() {
			sentMs = clock.monotonic();
		},
		pong(answered) {
			const startedMs = pingsSentMs.get(answered);
			if (startedMs === undefined) return;
			pingsSentMs.delete(answered);
			roundTripMs = clock.monotonic() - startedMs;
		},
		get roundTripMs() {
			return roundTripMs;
		},
		stop,
	};
}
