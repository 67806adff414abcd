import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../io/clock.ts";
import { spliceLimits } from "./limits.ts";
import { type Refusal, refusalReasons } from "./refusals.ts";

/** Says why on a raw socket and ends it; a peer that does not read the answer is cut after a moment. */
export function refuseSocket(socket: Duplex, refusal: Refusal, clock: Clock): void {
	if (socket.destroyed) return;
	const cancel = clock.after(spliceLimits.lingerMs, () => socket.destroy());
	socket.once("close", cancel);
	socket.on("error", () => {});
	// What the peer still sends is read and dropped: unread bytes would turn the answer into a reset.
	socket.resume();
	socket.end(refusalBytes(refusal));
}

/** Status, headers and body `{"error":{"code","message"}}` of a refusal. */
function answerTo({ reason, retryAfterSeconds, headers = {} }: Refusal) {
	const status = refusalReasons[reason];
	const text = STATUS_CODES[status] ?? "";
	const body = JSON.stringify({ error: { code: reason, message: text } });
	return {
		status,
		text,
		body,
		headers: {
			Connection: "close",
			"Content-Type": "application/json",
			"Content-Length": String(Buffer.byteLength(body)),
			...(retryAfterSeconds === undefined ? {} : { "Retry-After": String(retryAfterSeconds) }),
			...(status === 426 ? { Upgrade: "websocket", "Sec-WebSocket-Version": "13" } : {}),
			...headers,
		} as Record<string, string>,
	};
}

/** The whole HTTP answer of a refusal, as it goes out. */
export function refusalBytes(refusal: Refusal): string {
	const { status, text, headers, body } = answerTo(refusal);
	const lines = [`HTTP/1.1 ${status} ${text}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
	return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** Says why to a plain request and ends its connection. */
export function refuseResponse(response: ServerResponse, refusal: Refusal): void {
	if (response.headersSent || response.destroyed) return void response.destroy();
	const { status, headers, body } = answerTo(refusal);
	response.writeHead(status, headers).end(body);
}
