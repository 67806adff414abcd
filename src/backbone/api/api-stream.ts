import type { ServerResponse } from "node:http";
import type { Clock } from "../../io/clock.ts";
import { apiUnreadBytesMax } from "./api-http.ts";

/** Keeps proxies from cutting a stream whose next token takes long. */
const keepAliveMs = 15_000;

/** Server-sent events of one answer. */
export interface EventStream {
	send(value: unknown): void;
	/** Says that nothing follows. */
	end(): void;
	/** Says why nothing follows; false when nothing was sent yet, so that an HTTP error can say it. */
	fail(error: unknown): boolean;
}

/**
 * The response's head goes out with the first event, or after 15 s.
 *
 * A client that does not read is cut off.
 *
 * @param first an event to begin with
 */
export function openEventStream(
	response: ServerResponse,
	{ clock, first }: { clock: Clock; first: unknown },
): EventStream {
	let cancelTimer = clock.after(keepAliveMs, keepAlive);
	response.once("close", () => cancelTimer());

	function keepAlive(): void {
		write(": still decoding\n\n");
	}
	function write(text: string): void {
		cancelTimer();
		if (response.writableEnded || response.destroyed) return;
		if (!response.headersSent) {
			response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
			if (first !== null) response.write(eventOf(first));
		}
		response.write(text);
		if (response.writableLength > apiUnreadBytesMax) response.destroy();
		else cancelTimer = clock.after(keepAliveMs, keepAlive);
	}
	function end(): void {
		write("data: [DONE]\n\n");
		cancelTimer();
		response.end();
	}
	return {
		send: (value) => write(eventOf(value)),
		end,
		fail(error) {
			cancelTimer();
			if (!response.headersSent) return false;
			write(eventOf({ error }));
			end();
			return true;
		},
	};
}

function eventOf(value: unknown): string {
	return `data: ${JSON.stringify(value)}\n\n`;
}
