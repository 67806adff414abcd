import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { sha256 } from "../io/crypto.ts";
import { decodeSession, encodeSession } from "./codec.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";
import { createInbox } from "./inbox.ts";
import { limits } from "./limits.ts";
import type { Link, LinkEnd, Transport } from "./link.ts";
import { closeCodes, type SessionMessage } from "./messages.ts";
import { createTagger, type Tagger } from "./tag.ts";

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
	return new SessionLink(transport, options);
}

class SessionLink implements Link {
	readonly peer: Uint8Array;
	readonly session: Uint8Array;
	readonly ended: Promise<LinkEnd>;
	readonly #transport: Transport;
	readonly #side: LinkSide;
	readonly #hidden: number;
	readonly #sending: Tagger;
	readonly #receiving: Tagger;
	readonly #heartbeat: Heartbeat;
	readonly #inbox = createInbox<{ message: SessionMessage; bytes: Uint8Array; digest: Uint8Array }>();
	#handler: Link["onMessage"] = null;
	/** Set once we ended the link ourselves, which says more than the transport's code. */
	#ownEnd: LinkEnd | null = null;

	constructor(transport: Transport, options: SessionLinkOptions) {
		this.peer = options.peer;
		this.session = options.session;
		this.#transport = transport;
		this.#side = options.side;
		this.#hidden = options.hidden;
		this.#sending = createTagger(options.keys.send);
		this.#receiving = createTagger(options.keys.receive);
		this.#heartbeat = startHeartbeat({
			clock: options.clock,
			heartbeatMs: options.heartbeatMs,
			deadMs: options.deadMs,
			bytesRead: () => transport.bytesRead,
			ping: (sequence, senderTimeUs) => this.send({ kind: "ping", sequence, senderTimeUs }),
			dead: () => this.#cut("dead_peer"),
		});
		this.ended = transport.ended.then((end) => {
			this.#heartbeat.stop();
			transport.onMessage = null;
			return this.#ownEnd ?? end;
		});
		transport.limitMessages?.(limits.messageBytes + limits.tagBytes);
		transport.onMessage = (tagged) => this.#receive(tagged);
	}

	get onMessage(): Link["onMessage"] {
		return this.#handler;
	}

	set onMessage(handler: Link["onMessage"]) {
		this.#handler = handler;
		this.#inbox.handler =
			handler === null
				? null
				: ({ message, bytes, digest }) => {
						if (this.#ownEnd === null) handler(message, bytes, digest);
					};
	}

	get roundTripMs(): number | null {
		return this.#heartbeat.roundTripMs;
	}

	get bytesPending(): number {
		return this.#transport.bytesPending;
	}

	send(message: SessionMessage): Uint8Array | null {
		if (this.#ownEnd !== null) return null;
		if (message.kind === "unknown") throw new KvasirError("internal", "Cannot send a message of an unknown kind");
		const { header, tensor } = encodeSession(message);
		const digest = tensor === null ? sha256(header) : sha256(header, tensor);
		this.#transport.send(framed(header, tensor, this.#sending.next(digest)));
		this.#heartbeat.sent();
		if (this.#transport.bytesPending > limits.pendingBytes) this.#cut("does not read");
		return digest;
	}

	close(code: number, reason: string): void {
		if (this.#ownEnd !== null) return;
		this.#ownEnd = { code, reason };
		this.#transport.close(code, reason);
	}

	/** No word reaches this peer: end without one. */
	#cut(reason: string): void {
		this.#ownEnd ??= { code: closeCodes.deadPeer, reason };
		this.#transport.terminate();
	}

	#receive(tagged: Uint8Array): void {
		if (this.#ownEnd !== null) return;
		const length = tagged.length - limits.tagBytes;
		const bytes = tagged.subarray(0, Math.max(0, length));
		const digest = sha256(bytes);
		if (length < 1 || !this.#receiving.check(tagged.subarray(length), digest)) {
			this.close(closeCodes.malformed, "bad_tag");
			return;
		}
		const message = this.#decodeOrClose(bytes);
		if (message === null) return;
		if (message.kind === "ping") this.send({ ...message, kind: "pong" });
		else if (message.kind === "pong") this.#heartbeat.pong(message.sequence);
		else if (message.kind === "unknown") {
			this.send({ kind: "refuse", id: null, code: "unknown_kind", text: String(message.number) });
		} else if (!this.#inbox.push({ message, bytes, digest }, bytes.length)) {
			this.close(closeCodes.tooBig, "bounds: too many unread");
		}
	}

	#decodeOrClose(bytes: Uint8Array): SessionMessage | null {
		try {
			const message = decodeSession(bytes, this.#hidden);
			if (arriving[this.#side].has(message.kind)) return message;
			this.close(closeCodes.malformed, `malformed: ${message.kind} is not for a ${this.#side}`);
		} catch (error) {
			if (!(error instanceof KvasirError)) throw error;
			this.close(closeCodes.malformed, `${error.code}: ${error.facts.field}`);
		}
		return null;
	}
}

/** One frame for a small message, fragments with the tensor uncopied for a large one. */
function framed(header: Uint8Array, tensor: Uint8Array | null, tag: Uint8Array): Uint8Array[] {
	const parts = tensor === null ? [header, tag] : [header, tensor, tag];
	const bytes = header.length + (tensor?.length ?? 0) + tag.length;
	return bytes < limits.singleFrameBytes ? [Buffer.concat(parts, bytes)] : parts;
}
