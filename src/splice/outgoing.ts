import http from "node:http";
import net, { type Socket } from "node:net";
import type { Clock } from "../io/clock.ts";
import { spliceLimits } from "./limits.ts";

/** A request that gateway or hub builds itself: nothing of the peer's head is passed on as it came. */
export interface OutgoingRequest {
	/** Path and query. */
	readonly target: string;
	readonly headers: readonly (readonly [name: string, value: string])[];
}

/** What came back before the deadline. `failed` says where: `dial`, `closed` before an answer, `timeout`, `malformed`. */
export type OutgoingAnswer =
	| {
			readonly kind: "switched";
			readonly response: http.IncomingMessage;
			readonly socket: Socket;
			/** Bytes that came behind the answer's head. */
			readonly rest: Buffer;
	  }
	| { readonly kind: "plain"; readonly response: http.IncomingMessage; readonly socket: Socket }
	| { readonly kind: "failed"; readonly reason: "dial" | "closed" | "timeout" | "malformed" };

/** Dials a neighbour's port; the socket keeps its writing side when the other ends. Null: not in time, or refused. */
export function dial(
	{ host, port }: { host: string; port: number },
	{ clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Socket | null> {
	return new Promise((resolve) => {
		const socket = net.connect({ host, port, noDelay: true, allowHalfOpen: true });
		const cancel = clock.after(spliceLimits.dialMs, fail);
		function fail(): void {
			socket.destroy();
			done(null);
		}
		function done(result: Socket | null): void {
			cancel();
			signal.removeEventListener("abort", fail);
			resolve(result);
		}
		socket.on("error", fail);
		socket.once("connect", () => done(socket));
		signal.addEventListener("abort", fail, { once: true });
		if (signal.aborted) fail();
	});
}

/** Sends one GET over a socket that nobody else uses and waits for the head of its answer. Never rejects; on failure the socket is destroyed. */
export function request(
	socket: Socket,
	{ target, headers }: OutgoingRequest,
	{ clock, answerMs, signal }: { clock: Clock; answerMs: number; signal: AbortSignal },
): Promise<OutgoingAnswer> {
	return new Promise((resolve) => {
		const outgoing = http.request({
			createConnection: () => socket,
			method: "GET",
			path: target,
			headers: headers.flat(),
			setHost: false,
			maxHeaderSize: spliceLimits.answerHeadBytesMax,
		});
		const cancel = clock.after(answerMs, () => fail("timeout"));
		const abort = () => fail("closed");
		function done(answer: OutgoingAnswer): void {
			cancel();
			signal.removeEventListener("abort", abort);
			resolve(answer);
		}
		function fail(reason: "closed" | "timeout" | "malformed"): void {
			done({ kind: "failed", reason });
			outgoing.destroy();
			socket.destroy();
		}
		socket.on("error", () => {});
		outgoing.on("error", (error: NodeJS.ErrnoException) => {
			fail(error.code?.startsWith("HPE_") ? "malformed" : "closed");
		});
		outgoing.once("upgrade", (response, _, rest) => done({ kind: "switched", response, socket, rest }));
		outgoing.once("response", (response) => {
			response.on("error", () => {});
			done({ kind: "plain", response, socket });
		});
		signal.addEventListener("abort", abort, { once: true });
		if (signal.aborted) return abort();
		outgoing.end();
	});
}
