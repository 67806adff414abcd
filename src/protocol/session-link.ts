import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { sha256 } from "../io/crypto.ts";
import { decodeSession, encodeSession } from "./codec.ts";
import { startHeartbeat } from "./heartbeat.ts";
import { createInbox } from "./inbox.ts";
import { limits } from "./limits.ts";
import type { Link, LinkEnd, Transport } from "./link.ts";
import { closeCodes, type SessionMessage } from "./messages.ts";
import { createTagger } from "./tag.ts";

/** Which end of a link this is; it decides which messages may arrive. */
export type LinkSide = "worker" | "backbone";

export interface SessionLinkOptions {
	readonly side: LinkSide;
	readonly peer: Uint8Array;
	readonly session: Uint8Array;
	/** 32 bytes each, from the handshake. */
	readonly keys: { readonly send: Uint8Array; readonly receive: Uint8Array };
	readonly heartbeatMs: number;
	readonly deadMs: number;
	/** The model's width: tensor sizes are checked against it. */
	readonly hidden: number;
	readonly clock: Clock;
}

const arriving: Readonly<Record<LinkSide, ReadonlySet<SessionMessage["kind"]>>> = {
	worker: new Set(["assign", "dispatch", "refuse", "cancel", "ping", "pong", "receipt", "drain", "bye", "unknown"]),
	backbone: new Set(["holding", "partials", "refuse", "ping", "pong", "countersign", "drain", "bye", "unknown"]),
};

/**
 * The link over a transport whose handshake is done: tags every message, answers pings, notices a dead peer, and ends with a close
 * code at the first message that is malformed, beyond a bound, wrongly tagged or not this side's to receive.
 */
export function createSessionLink(transport: Transport, options: SessionLinkOptions): Link {
	const { side, clock, hidden } = options;
	const sending = createTagger(options.keys.send);
	const receiving = createTagger(options.keys.receive);
	const inbox = createInbox<{ message: SessionMessage; bytes: Uint8Array; digest: Uint8Array }>();
	let handler: Link["onMessage"] = null;
	/** Set once we ended the link ourselves, which says more than the transport's code. */
	let ownEnd: LinkEnd | null = null;

	const heartbeat = startHeartbeat({
		clock,
		heartbeatMs: options.heartbeatMs,
		deadMs: options.deadMs,
		bytesRead: () => transport.bytesRead,
		ping: (sequence, senderTimeUs) => send({ kind: "ping", sequence, senderTimeUs }),
		dead: () => {
			ownEnd ??= { code: closeCodes.deadPeer, reason: "dead_peer" };
			transport.terminate();
		},
	});
	const ended = transport.ended.then((end) => {
		heartbeat.stop();
		transport.onMessage = null;
		return ownEnd ?? end;
	});

	function send(message: SessionMessage): Uint8Array | null {
		if (ownEnd !== null) return null;
		if (message.kind === "unknown") throw new KvasirError("internal", "Cannot send a message of an unknown kind");
		const { header, tensor } = encodeSession(message);
		const digest = tensor === null ? sha256(header) : sha256(header, tensor);
		transport.send(framed(header, tensor, sending.next(digest)));
		heartbeat.sent();
		if (transport.bytesPending > limits.pendingBytes) {
			ownEnd = { code: closeCodes.deadPeer, reason: "does not read" };
			transport.terminate();
		}
		return digest;
	}

	function close(code: number, reason: string): void {
		if (ownEnd !== null) return;
		ownEnd = { code, reason };
		transport.close(code, reason);
	}

	function receive(tagged: Uint8Array): void {
		if (ownEnd !== null) return;
		const length = tagged.length - limits.tagBytes;
		const bytes = tagged.subarray(0, Math.max(0, length));
		const digest = sha256(bytes);
		if (length < 1 || !receiving.check(tagged.subarray(length), digest)) {
			close(closeCodes.malformed, "bad_tag");
			return;
		}
		const message = decodeOrClose(bytes);
		if (message === null) return;
		if (message.kind === "ping") send({ ...message, kind: "pong" });
		else if (message.kind === "pong") heartbeat.pong(message.sequence);
		else if (message.kind === "unknown") {
			send({ kind: "refuse", id: null, code: "unknown_kind", text: String(message.number) });
		} else if (!inbox.push({ message, bytes, digest }, bytes.length))
			close(closeCodes.tooBig, "bounds: too many unread");
	}

	function decodeOrClose(bytes: Uint8Array): SessionMessage | null {
		try {
			const message = decodeSession(bytes, hidden);
			if (arriving[side].has(message.kind)) return message;
			close(closeCodes.malformed, `malformed: ${message.kind} is not for a ${side}`);
		} catch (error) {
			if (!(error instanceof KvasirError)) throw error;
			close(closeCodes.malformed, `${error.code}: ${error.facts.field}`);
		}
		return null;
	}

	transport.limitMessages?.(limits.messageBytes + limits.tagBytes);
	transport.onMessage = receive;
	return {
		peer: options.peer,
		session: options.session,
		send,
		get onMessage() {
			return handler;
		},
		set onMessage(value) {
			handler = value;
			inbox.handler =
				value === null ? null : ({ message, bytes, digest }) => ownEnd === null && value(message, bytes, digest);
		},
		ended,
		get roundTripMs() {
			return heartbeat.roundTripMs;
		},
		get bytesPending() {
			return transport.bytesPending;
		},
		close,
	};
}

/** One frame for a small message, fragments with the tensor uncopied for a large one. */
function framed(header: Uint8Array, tensor: Uint8Array | null, tag: Uint8Array): Uint8Array[] {
	const parts = tensor === null ? [header, tag] : [header, tensor, tag];
	const bytes = header.length + (tensor?.length ?? 0) + tag.length;
	return bytes < limits.singleFrameBytes ? [Buffer.concat(parts, bytes)] : parts;
}
