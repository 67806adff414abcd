import type { SessionMessage } from "./messages.ts";

/** How and why a connection ended. */
export interface LinkEnd {
	/** WebSocket close code; 1006 when the connection just went away. */
	readonly code: number;
	readonly reason: string;
}

/** Whole binary messages over some connection: a WebSocket, or memory in tests. Knows nothing of what they mean. */
export interface Transport {
	/** Sends the parts as one message, uncopied where the connection allows. */
	send(parts: readonly Uint8Array[]): void;
	/** Set once by the owner; messages that arrived before are delivered then. */
	onMessage: ((message: Uint8Array) => void) | null;
	readonly ended: Promise<LinkEnd>;
	/** Bytes that arrived on the connection, in whatever portions: liveness (wire.md section 3). */
	readonly bytesRead: number;
	/** Bytes sent and not yet handed to the operating system. */
	readonly bytesPending: number;
	/** Says goodbye with a code. */
	close(code: number, reason: string): void;
	/** Ends at once, without a word. */
	terminate(): void;
	/** Where it can: lowers or raises the largest message that is taken off the connection. */
	limitMessages?(bytes: number): void;
}

/** A connection after the handshake: authenticated messages, tagged both ways. */
export interface Link {
	/** The peer's 32-byte key, proved. */
	readonly peer: Uint8Array;
	/** 16 bytes, from welcome. */
	readonly session: Uint8Array;
	/** Returns the message's SHA-256 (receipts are over it), null once the link has ended. Tensors are sent uncopied: leave them alone. */
	send(message: SessionMessage): Uint8Array | null;
	/**
	 * Set once by the owner. Ping and pong are answered below and never arrive here.
	 * `bytes` are the whole message without its tag, `digest` their SHA-256.
	 */
	onMessage: ((message: SessionMessage, bytes: Uint8Array, digest: Uint8Array) => void) | null;
	readonly ended: Promise<LinkEnd>;
	/** The last round trip of a ping, milliseconds; null before the first. */
	readonly roundTripMs: number | null;
	readonly bytesPending: number;
	close(code: number, reason: string): void;
}
