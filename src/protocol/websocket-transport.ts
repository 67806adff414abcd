import type { Socket } from "node:net";
import type { RawData, WebSocket } from "ws";
import { createInbox } from "./inbox.ts";
import { limits } from "./limits.ts";
import type { LinkEnd, Transport } from "./link.ts";
import { closeCodes } from "./messages.ts";

/** Options of every `ws` socket, client or server, that carries the protocol: no compression, nothing above the message bound. */
export const webSocketOptions = {
	perMessageDeflate: false,
	maxPayload: limits.messageBytes + limits.tagBytes,
	/** Milliseconds to wait for the peer's half of the closing handshake. */
	closeTimeout: 2_000,
} as const;

/**
 * A transport over an open `ws` socket and the connection under it (the upgraded socket: on a client, the `upgrade` event's
 * `response.socket`). Sets no delay, closes a text message with 1003 and a too big one with 1009, and never throws for what a
 * peer does. Takes over the socket: nobody else may listen or send.
 *
 * @param fragmentBytes longest frame to send, for paths that break on long ones. @default no limit
 */
export function webSocketTransport(ws: WebSocket, socket: Socket, fragmentBytes = Number.POSITIVE_INFINITY): Transport {
	const inbox = createInbox<Uint8Array>();
	let ownEnd: LinkEnd | null = null;
	socket.setNoDelay(true);
	ws.binaryType = "nodebuffer";
	const ended = new Promise<LinkEnd>((resolve) => {
		ws.once("close", (code, reason) => resolve(ownEnd ?? { code, reason: reason.toString("utf8") }));
	});
	// `ws` closes with 1009 (or 1002, 1007) itself and reports it here; the close event follows.
	ws.on("error", (error: Error & { code?: string }) => {
		if (error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH") ownEnd ??= { code: closeCodes.tooBig, reason: "too big" };
		else ownEnd ??= { code: closeCodes.lost, reason: error.code ?? error.message };
	});
	ws.on("message", (data: RawData, isBinary: boolean) => {
		if (ownEnd !== null) return;
		if (!isBinary) close(closeCodes.text, "text");
		else if (!inbox.push(data as Buffer, (data as Buffer).length)) close(closeCodes.tooBig, "too many messages unread");
	});

	function close(code: number, reason: string): void {
		if (ownEnd !== null) return;
		ownEnd = { code, reason };
		ws.close(code, reason.replace(/[^ -~]/g, "?").slice(0, 120));
	}

	return {
		send(parts) {
			if (ownEnd !== null || ws.readyState !== ws.OPEN) return;
			const frames = parts.flatMap((part) => framesOf(part, fragmentBytes));
			if (frames.length > 1) socket.cork();
			for (let i = 0; i < frames.length; i++)
				ws.send(frames[i]!, { binary: true, fin: i === frames.length - 1 }, ignore);
			if (frames.length > 1) socket.uncork();
		},
		get onMessage() {
			return inbox.handler;
		},
		set onMessage(handler) {
			inbox.handler = handler;
		},
		ended,
		get bytesRead() {
			return socket.bytesRead;
		},
		get bytesPending() {
			return ws.readyState === ws.OPEN ? ws.bufferedAmount : 0;
		},
		close,
		terminate() {
			ownEnd ??= { code: closeCodes.lost, reason: "" };
			ws.terminate();
		},
		limitMessages(bytes) {
			// `ws` fixes the bound when the socket opens; before welcome a stranger gets less. A test notices if this stops working.
			const { _receiver: receiver } = ws as unknown as { _receiver?: { _maxPayload: number } };
			if (receiver !== undefined) receiver._maxPayload = bytes;
		},
	};
}

/** The part itself, or views of it of at most `bytes`. */
function framesOf(part: Uint8Array, bytes: number): Uint8Array[] {
	if (part.length <= bytes) return [part];
	return Array.from({ length: Math.ceil(part.length / bytes) }, (_, i) => part.subarray(i * bytes, (i + 1) * bytes));
}

/** A failed send is followed by the close event, which is what counts. */
function ignore(): void {}
