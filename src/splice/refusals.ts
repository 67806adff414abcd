import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../io/clock.ts";
import type { Logger } from "../io/log.ts";
import { spliceLimits } from "./limits.ts";

/** The fixed table: what a stranger is told instead of being spliced. Nothing from the inside is ever quoted. */
export const refusals = {
	bad_request: { status: 400, text: "Bad Request" },
	unauthorized: { status: 401, text: "Unauthorized" },
	not_admitted: { status: 403, text: "Forbidden" },
	not_found: { status: 404, text: "Not Found" },
	method: { status: 405, text: "Method Not Allowed" },
	slow: { status: 408, text: "Request Timeout" },
	too_large: { status: 413, text: "Content Too Large" },
	target_too_long: { status: 414, text: "URI Too Long" },
	version: { status: 426, text: "Upgrade Required" },
	busy: { status: 429, text: "Too Many Requests" },
	head_too_large: { status: 431, text: "Request Header Fields Too Large" },
	bad_answer: { status: 502, text: "Bad Gateway" },
	unavailable: { status: 503, text: "Service Unavailable" },
} as const;
export type RefusalCode = keyof typeof refusals;

/** One refusal: the code decides status and text, `reason` is for log, metrics and the body, `headers` are ours. */
export interface Refusal {
	readonly code: RefusalCode;
	/** One word, such as `replay` or `links_per_key`. */
	readonly reason: string;
	readonly retryAfterSeconds?: number;
	readonly headers?: Readonly<Record<string, string>>;
}

/** Status, headers and body `{"error":{"code","message"}}` of a refusal. */
function answerTo({ code, reason, retryAfterSeconds, headers = {} }: Refusal) {
	const { status, text } = refusals[code];
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
			...(code === "version" ? { Upgrade: "websocket", "Sec-WebSocket-Version": "13" } : {}),
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

/** The refusal of a request that the HTTP parser gave up on. */
export function parserRefusal(error: NodeJS.ErrnoException): Refusal {
	if (error.code === "HPE_HEADER_OVERFLOW") return { code: "head_too_large", reason: "head" };
	if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") return { code: "slow", reason: "slow" };
	return { code: "bad_request", reason: "malformed" };
}

/** Says why on a raw socket and ends it; a peer that does not read the answer is cut after a moment. */
export function refuseSocket(socket: Duplex, refusal: Refusal, clock: Clock): void {
	if (socket.destroyed) return;
	const cancel = clock.after(spliceLimits.lingerMs, () => socket.destroy());
	socket.once("close", cancel);
	socket.on("error", () => {});
	// What the peer still sends is read and dropped: unread bytes would turn the answer into a reset.
	socket.resume();
	socket.once("end", () => socket.destroy());
	socket.end(refusalBytes(refusal));
}

/** The refusal of a request that failed on our side, which no request may turn into more than that; logged, nothing quoted. */
export function internalRefusal(error: unknown, log: Logger): Refusal {
	log.error({ error: error instanceof Error ? error.stack : String(error) }, "a request failed");
	return { code: "unavailable", reason: "internal", retryAfterSeconds: spliceLimits.retryAfterAwaySecondsMax };
}

/** Seconds to wait, drawn from 1 to `max`. */
export function drawRetryAfter(uniform: () => number, max: number): number {
	return 1 + Math.floor(uniform() * max);
}
