import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { spliceLimits } from "../limits.ts";

/** Statuses and headers of manifests and slices that are passed on; everything else becomes 502. */
const statuses = new Set([200, 206, 304, 404, 416, 429, 503]);
const headerNames = [
	"content-type",
	"content-length",
	"content-range",
	"accept-ranges",
	"etag",
	"retry-after",
] as const;

/**
 * Streams a plain answer on, rebuilt from the headers we know. Returns the body's bytes, or null when the answer was none of ours
 * (nothing has been written then). A body cut short cuts the connection, so that the reader notices.
 */
export async function forwardResponse(from: IncomingMessage, to: ServerResponse): Promise<number | null> {
	const status = from.statusCode ?? 0;
	if (!statuses.has(status)) {
		from.destroy();
		return null;
	}
	const headers: Record<string, string> = { Connection: "close" };
	for (const name of headerNames) {
		const value = from.headers[name];
		if (typeof value === "string") headers[name] = value;
	}
	to.writeHead(status, headers);
	// A reader that stalls gives its connections back.
	to.setTimeout(spliceLimits.idleMs, () => to.destroy());
	let bytes = 0;
	from.on("data", (part: Buffer) => {
		bytes += part.length;
	});
	try {
		await pipeline(from, to);
	} catch {
		to.destroy();
	}
	return bytes;
}
