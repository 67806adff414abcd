import type { IncomingMessage, ServerResponse } from "node:http";
import { type ErrorCode, KvasirError } from "../../errors.ts";
import { equalBytes, sha256 } from "../../io/crypto.ts";

/** A long prompt as JSON. */
const apiBodyBytesMax = 8 * 1024 * 1024;
/** A streaming client that reads this much too slowly is cut off. */
export const apiUnreadBytesMax = 4 * 1024 * 1024;

/** An error with the HTTP status and type that OpenAI's clients know. */
export interface ApiFailure {
	readonly status: number;
	readonly type: string;
	readonly code: string | null;
	readonly message: string;
	readonly param: string | null;
}

const statusOf: Partial<Record<ErrorCode, readonly [status: number, type: string]>> = {
	usage: [400, "invalid_request_error"],
	bounds: [400, "invalid_request_error"],
	auth: [401, "authentication_error"],
	not_admitted: [403, "permission_error"],
	model_missing: [404, "not_found_error"],
	refused: [429, "rate_limit_error"],
	closed: [503, "server_error"],
	remote_required: [503, "server_error"],
};

/** What a client is told; internal errors keep their details to themselves. */
export function failureOf(error: unknown): ApiFailure {
	if (!(error instanceof KvasirError)) {
		return {
			status: 500,
			type: "server_error",
			code: "internal",
			message: "Cannot answer: internal error",
			param: null,
		};
	}
	const [status, type] = statusOf[error.code] ?? [500, "server_error"];
	const param = typeof error.facts.param === "string" ? error.facts.param : null;
	return { status, type, code: error.code, message: error.message, param };
}

export function sendJson(
	response: ServerResponse,
	status: number,
	value: unknown,
	headers: Record<string, string> = {},
): void {
	const body = Buffer.from(JSON.stringify(value));
	response.writeHead(status, { "content-type": "application/json", "content-length": body.length, ...headers });
	response.end(body);
}

export function sendFailure(response: ServerResponse, { status, ...error }: ApiFailure): void {
	sendJson(response, status, { error }, status === 429 ? { "retry-after": "1" } : {});
}

/** The JSON body of a request. Throws `usage`, `bounds`. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
	const parts: Buffer[] = [];
	let bytes = 0;
	for await (const part of request as AsyncIterable<Buffer>) {
		bytes += part.length;
		if (bytes > apiBodyBytesMax)
			throw new KvasirError("bounds", `Cannot read the request: more than ${apiBodyBytesMax} bytes`);
		parts.push(part);
	}
	try {
		return JSON.parse(Buffer.concat(parts).toString("utf8"));
	} catch (cause) {
		throw new KvasirError("usage", "Cannot read the request: its body is not JSON", { cause });
	}
}

/** The keys in the text of an API key file: one a line, `#` begins a comment. */
export function parseApiKeys(text: string): string[] {
	const lines = text.split(/\r?\n/).map((line) => line.replace(/#.*/, "").trim());
	return lines.filter((line) => line !== "");
}

/** Who may ask: holders of a key; without keys, requests addressed to this machine alone (a web page elsewhere cannot name it so). */
export function createApiGate(keys: readonly string[]): (request: IncomingMessage) => void {
	const digests = keys.map((key) => sha256(Buffer.from(key)));
	return ({ headers }) => {
		if (digests.length === 0) {
			const host = (headers.host ?? "").replace(/:\d+$/, "").toLowerCase();
			if (["localhost", "127.0.0.1", "[::1]"].includes(host)) return;
			throw new KvasirError("not_admitted", `Cannot answer: without API keys only localhost is served, not "${host}"`);
		}
		const given = sha256(Buffer.from(/^Bearer (.+)$/i.exec(headers.authorization ?? "")?.[1] ?? ""));
		// Every key is compared, so that the time taken says nothing.
		const known = digests.filter((digest) => equalBytes(digest, given)).length > 0;
		if (!known) throw new KvasirError("auth", "Cannot answer: the API key is missing or unknown");
	};
}
