import { limits } from "./limits.ts";

/** Hands values to whoever is listening, in order, and keeps those that arrive while nobody is. */
export interface Inbox<T> {
	/** Setting it delivers what waits, until it is set to null again. */
	handler: ((value: T) => void) | null;
	/** Takes a value of `bytes` bytes; false when it would wait beyond the bounds, and was dropped. */
	push(value: T, bytes: number): boolean;
	/** Forgets what waits. */
	clear(): void;
}

export function createInbox<T>(): Inbox<T> {
	let handler: ((value: T) => void) | null = null;
	let waiting: { value: T; bytes: number }[] = [];
	let waitingBytes = 0;
	let delivering = false;

	/** A handler may replace itself while it runs; whatever is set then gets the next value. */
	function deliver(): void {
		if (delivering) return;
		delivering = true;
		try {
			while (handler !== null && waiting.length > 0) {
				const next = waiting.shift()!;
				waitingBytes -= next.bytes;
				handler(next.value);
			}
		} finally {
			delivering = false;
		}
	}

	return {
		get handler() {
			return handler;
		},
		set handler(value) {
			handler = value;
			deliver();
		},
		push(value, bytes) {
			if (waiting.length >= limits.inboxMessages || waitingBytes + bytes > limits.inboxBytes) return false;
			waiting.push({ value, bytes });
			waitingBytes += bytes;
			deliver();
			return true;
		},
		clear() {
			waiting = [];
			waitingBytes = 0;
		},
	};
}
