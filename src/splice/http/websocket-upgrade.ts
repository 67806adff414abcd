import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { subprotocol } from "../../protocol/messages.ts";
import type { Refusal } from "../refusals.ts";

// The few rules of RFC 6455's opening handshake that a splice has to check itself, once on each side.

const keyPattern = /^[+/0-9A-Za-z]{22}==$/;

/** The `Sec-WebSocket-Accept` that answers a `Sec-WebSocket-Key` (RFC 6455 section 4.2.2). */
function acceptOf(key: string): string {
	return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/** The key of a proper upgrade to `kvasir.v1`, or why it is none. */
export function readUpgrade(request: IncomingMessage): { readonly key: string } | Refusal {
	const { headers } = request;
	if (request.method !== "GET") return { reason: "method" };
	if (carriesBody(request)) return { reason: "body" };
	if (headers.upgrade?.toLowerCase() !== "websocket") return { reason: "upgrade" };
	if (headers["sec-websocket-version"] !== "13") return { reason: "websocket_version" };
	const key = headers["sec-websocket-key"];
	if (key === undefined || !keyPattern.test(key)) return { reason: "websocket_key" };
	if (!offered(headers["sec-websocket-protocol"]).includes(subprotocol)) {
		return { reason: "subprotocol" };
	}
	return { key };
}

/** True when an answer of status 101 accepts exactly this key and our subprotocol. */
export function acceptsUpgrade(response: IncomingMessage, key: string): boolean {
	const { headers, statusCode } = response;
	return (
		statusCode === 101 &&
		headers.upgrade?.toLowerCase() === "websocket" &&
		headers["sec-websocket-accept"] === acceptOf(key) &&
		headers["sec-websocket-protocol"] === subprotocol
	);
}

/** The head that tells the peer it is connected; written by us, not passed on. */
export function switchingHead(key: string): string {
	return [
		"HTTP/1.1 101 Switching Protocols",
		"Upgrade: websocket",
		"Connection: Upgrade",
		`Sec-WebSocket-Accept: ${acceptOf(key)}`,
		`Sec-WebSocket-Protocol: ${subprotocol}`,
		"\r\n",
	].join("\r\n");
}

/** True for a request that announces a body: none of ours has one, and two ways to measure one are how requests are smuggled. */
export function carriesBody({ headers }: IncomingMessage): boolean {
	return headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
}

function offered(list: string | undefined): string[] {
	return list?.split(",", 8).map((name) => name.trim()) ?? [];
}
