import type { Socket } from "node:net";
import type { Clock } from "../io/clock.ts";
import type { Random } from "../io/random.ts";
import type { BackboneSocket, BackboneSource, NoBackbone } from "./hub/parked.ts";
import { connectionHeaders, type RelayedWorker } from "./hub-request.ts";
import { spliceLimits } from "./limits.ts";
import { type OutgoingAnswer, request } from "./outgoing.ts";

// What the hub writes into a parked (or dialled) socket, for each worker that comes; then it reads the answer's head:
//
//   GET /v1/relay?model=NAME&backbone=KEY HTTP/1.1        (or a manifest's or slice's path; the query as the worker gave it)
//   Host: backbone
//   Connection: Upgrade | close
//   Upgrade: websocket                                    (upgrades only, as are Sec-WebSocket-*)
//   Sec-WebSocket-Version: 13
//   Sec-WebSocket-Key: <the worker's>
//   Sec-WebSocket-Protocol: kvasir.v1
//   Range: bytes=...                                      (slices only)
//   X-Kvasir-Key: <the worker's key, base58>
//   X-Kvasir-Peer: <the worker's address>
//   X-Kvasir-Relay: <32 hex digits: the relay id of receipts>
//
// The backbone answers 101 with `Upgrade: websocket`, the Sec-WebSocket-Accept of RFC 6455 and `Sec-WebSocket-Protocol:
// kvasir.v1`; anything else and the socket is closed. Slices are answered with a Content-Length and the socket is then closed.

/** A backbone's answer and the socket it came on; or why there is none. */
export type BackboneAnswer =
	| { readonly ok: true; readonly relayId: string; readonly from: BackboneSocket; readonly answer: OutgoingAnswer }
	| { readonly ok: false; readonly reason: NoBackbone | "backbone_closed" | "backbone_timeout" | "backbone_malformed" };

/** Asks a backbone on the worker's behalf; a parked socket that turns out to be dead is replaced by another. */
export async function askBackbone(
	worker: RelayedWorker,
	source: BackboneSource,
	{ clock, random, signal }: { clock: Clock; random: Random; signal: AbortSignal },
): Promise<BackboneAnswer> {
	const relayId = Buffer.from(random.bytes(16)).toString("hex");
	for (let tries = 1; ; tries++) {
		const from = await source.take(worker.target, signal);
		if (typeof from === "string") return { ok: false, reason: from };
		const answer = await request(from.socket, backboneRequest(worker, relayId), {
			clock,
			signal,
			answerMs: spliceLimits.backboneAnswerMs,
		});
		if (answer.kind !== "failed") return { ok: true, relayId, from, answer };
		const reason = `backbone_${answer.reason === "dial" ? "closed" : answer.reason}` as const;
		const again = answer.reason === "closed" && !signal.aborted && tries < spliceLimits.parkedTriesMax;
		if (!again) return { ok: false, reason };
	}
}

/** Bytes both ways since now, read from the socket to the backbone; `rest` came with the answer's head. */
export function countingFrom(socket: Socket, rest: Buffer): () => { fromWorker: number; toWorker: number } {
	const writtenBefore = socket.bytesWritten;
	const readBefore = socket.bytesRead - rest.length;
	return () => ({
		fromWorker: socket.bytesWritten - writtenBefore,
		toWorker: socket.bytesRead - readBefore,
	});
}

function backboneRequest(worker: RelayedWorker, relayId: string) {
	return {
		target: worker.target.target,
		headers: [
			["Host", "backbone"],
			...connectionHeaders(worker),
			["X-Kvasir-Key", worker.key],
			["X-Kvasir-Peer", worker.peer],
			["X-Kvasir-Relay", relayId],
		] as [string, string][],
	};
}
