import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { KvasirError } from "../../errors.ts";
import type { Logger } from "../../io/log.ts";
import { goneSignal } from "../gone-signal.ts";
import { spliceLimits } from "../limits.ts";
import { timeHeader } from "../refusals.ts";
import { authenticateCaller, type CallerParts } from "./caller.ts";
import { failure, type Route, type RouteAnswer } from "./route.ts";

export interface RouterParts extends CallerParts {
	readonly log: Logger;
	/** Aborts when the server closes. */
	readonly closing: AbortSignal;
}

/** A request listener for these routes; everything it answers is JSON except a route's own text. */
export function createRouter(routes: readonly Route[], parts: RouterParts): RequestListener {
	return (request, response) => {
		serve(request, response, routes, parts).then(
			(answer) => send(response, answer),
			(error) => send(response, answerOf(error, parts.log)),
		);
	};
}

async function serve(
	request: IncomingMessage,
	response: ServerResponse,
	routes: readonly Route[],
	parts: RouterParts,
): Promise<RouteAnswer> {
	const target = request.url ?? "/";
	if (target.length > spliceLimits.targetBytesMax) return failure(414, "target", "The request's path is too long");
	const [path = "/", query = ""] = target.split("?", 2);
	const found = routes.filter((route) => match(route.path, path) !== null);
	const route = found.find(({ method }) => method === request.method);
	if (route === undefined) {
		return found.length > 0 ? failure(405, "method", "Another method") : failure(404, "path", "No such path");
	}
	const body = await readBody(request);
	if (body === null) return failure(413, "body", `The body exceeds ${spliceLimits.bodyBytesMax} bytes`);
	const caller = authenticateCaller(route.caller, request, { path: target, body }, parts);
	if (!caller.ok) {
		const answer = failure(caller.status, caller.reason, "The request is not authorised");
		return caller.reason === "skew" ? { ...answer, headers: timeHeader(parts.clock) } : answer;
	}
	return route.handle({
		params: match(route.path, path)!,
		query: new URLSearchParams(query),
		body,
		key: caller.key,
		signal: goneSignal(response, parts.closing),
	});
}

/** The values of a pattern's `:name` segments, or null where the path is another. */
function match(pattern: string, path: string): Record<string, string> | null {
	const wanted = pattern.split("/");
	const given = path.split("/");
	if (wanted.length !== given.length) return null;
	const params: Record<string, string> = {};
	for (const [i, segment] of wanted.entries()) {
		if (segment.startsWith(":")) params[segment.slice(1)] = given[i]!;
		else if (segment !== given[i]) return null;
	}
	return params;
}

/** The body, or null when it is larger than allowed (announced or not). */
async function readBody(request: IncomingMessage): Promise<Uint8Array | null> {
	if (Number(request.headers["content-length"] ?? 0) > spliceLimits.bodyBytesMax) return null;
	const parts: Buffer[] = [];
	let bytes = 0;
	for await (const part of request) {
		bytes += part.length;
		if (bytes > spliceLimits.bodyBytesMax) return null;
		parts.push(part);
	}
	return Buffer.concat(parts);
}

function send(response: ServerResponse, answer: RouteAnswer): void {
	if (response.headersSent || response.destroyed) return;
	const body = answer.text ?? JSON.stringify(answer.json ?? {});
	response.writeHead(answer.status, {
		"Content-Type": answer.type ?? "application/json",
		"Content-Length": Buffer.byteLength(body),
		"Cache-Control": "no-store",
		...answer.headers,
		...(answer.status === 413 ? { Connection: "close" } : {}),
	});
	response.end(body);
}

/** An error as an answer: what the caller did wrong with its code; what went wrong here only as `internal`. */
function answerOf(error: unknown, log: Logger): RouteAnswer {
	const status = error instanceof KvasirError ? statuses[error.code] : undefined;
	if (status !== undefined) return failure(status, (error as KvasirError).code, (error as KvasirError).message);
	if (error instanceof Error && error.name === "AbortError") return failure(503, "closing", "The server is closing");
	log.error({ error }, "a request failed");
	return failure(500, "internal", "The request failed on our side");
}

const statuses: Partial<Record<string, number>> = {
	usage: 400,
	malformed: 400,
	bounds: 400,
	bad_key: 400,
	bad_receipt: 400,
	auth: 401,
	not_admitted: 403,
	conflict: 409,
	diverged: 409,
	payment: 409,
};
