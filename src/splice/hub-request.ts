import type { IncomingMessage } from "node:http";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { Random } from "../io/random.ts";
import { subprotocol } from "../protocol/messages.ts";
import type { NonceCache } from "../protocol/nonce-cache.ts";
import { checkRequest, signRequest } from "../protocol/request-authorization.ts";
import type { OutgoingRequest } from "./outgoing.ts";
import type { Refusal } from "./refusals.ts";
import { readWorkerTarget, type WorkerTarget } from "./targets.ts";

// What travels from the gateway to the hub's relay port:
//
//   GET /v1/relay?model=NAME&backbone=KEY HTTP/1.1        (or a manifest's or slice's path; the query only where given)
//   Host: hub
//   Connection: Upgrade | close
//   Upgrade: websocket                                    (upgrades only, as are Sec-WebSocket-*)
//   Sec-WebSocket-Version: 13
//   Sec-WebSocket-Key: <the worker's>
//   Sec-WebSocket-Protocol: kvasir.v1
//   Range: bytes=...                                      (slices only)
//   X-Kvasir-Key: <the worker's key, base58, proved at the gateway>
//   X-Kvasir-Peer: <the worker's address>
//   Authorization: Kvasir1-Secret <time>.<nonce>.<HMAC under the gateway-hub secret over method, target and the facts below>

/** What the gateway vouches for. */
export interface Admitted {
	readonly key: Uint8Array;
	readonly peer: string;
	/** Of an upgrade. */
	readonly websocketKey?: string;
	/** Of a slice. */
	readonly range?: string;
}

/** The request to the hub's relay port for an admitted worker. */
export function hubRequest(
	target: string,
	admitted: Admitted,
	{ secret, clock, random }: { secret: Uint8Array; clock: Clock; random: Random },
): OutgoingRequest {
	const authorization = signRequest(
		{ method: "GET", path: target, facts: factsOf(addressOf(admitted.key), admitted) },
		{ secret },
		{ clock, random },
	);
	return {
		target,
		headers: [
			["Host", "hub"],
			...connectionHeaders(admitted),
			["X-Kvasir-Key", addressOf(admitted.key)],
			["X-Kvasir-Peer", admitted.peer],
			["Authorization", authorization],
		],
	};
}

/** The headers of an upgrade, or of a request that is the last one on its connection. */
export function connectionHeaders({ websocketKey, range }: Pick<Admitted, "websocketKey" | "range">) {
	const headers: [string, string][] =
		websocketKey === undefined
			? [["Connection", "close"]]
			: [
					["Connection", "Upgrade"],
					["Upgrade", "websocket"],
					["Sec-WebSocket-Version", "13"],
					["Sec-WebSocket-Key", websocketKey],
					["Sec-WebSocket-Protocol", subprotocol],
				];
	if (range !== undefined) headers.push(["Range", range]);
	return headers;
}

/** A worker as the gateway vouched for it. */
export interface RelayedWorker {
	readonly target: WorkerTarget;
	readonly key: string;
	readonly peer: string;
	readonly websocketKey?: string;
	readonly range?: string;
}

/** Checks that a request at the hub's relay port was built by the gateway that shares the secret, and reads whom it vouches for. */
export function readRelayedWorker(
	request: IncomingMessage,
	parts: { secret: Uint8Array; clock: Clock; nonces: NonceCache },
	websocketKey?: string,
): RelayedWorker | Refusal {
	const { headers, url = "" } = request;
	const key = one(headers["x-kvasir-key"]);
	const peer = one(headers["x-kvasir-peer"]);
	const asked = {
		...(websocketKey === undefined ? {} : { websocketKey }),
		...(headers.range === undefined ? {} : { range: headers.range }),
	};
	const facts = factsOf(key, { peer, ...asked });
	const check = checkRequest(headers.authorization, { method: "GET", path: url, facts }, parts);
	if (!check.ok) return { reason: check.reason };
	if (check.by !== "secret") return { reason: "signature" };
	const target = readWorkerTarget(url);
	return "reason" in target ? target : { target, key, peer, ...asked };
}

function factsOf(key: string, { peer, websocketKey = "", range = "" }: Omit<Admitted, "key">): string[] {
	return [key, peer, websocketKey, range];
}

function one(value: string | string[] | undefined): string {
	return typeof value === "string" ? value : "";
}
