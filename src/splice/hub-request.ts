import type { IncomingMessage } from "node:http";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { Random } from "../io/random.ts";
import { subprotocol } from "../protocol/messages.ts";
import type { NonceCache } from "../protocol/nonce-cache.ts";
import { checkRequest, signRequest } from "../protocol/request-authorization.ts";
import type { SignedHeaderRefusal } from "../protocol/signed-text.ts";
import type { OutgoingRequest } from "./outgoing.ts";

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

/** Believed: who the gateway says is there. */
export type HubRequestCheck =
	| { readonly ok: true; readonly key: string; readonly peer: string }
	| { readonly ok: false; readonly reason: SignedHeaderRefusal };

/** Checks that a request at the hub's relay port was built by the gateway that shares the secret. */
export function checkHubRequest(
	request: IncomingMessage,
	parts: { secret: Uint8Array; clock: Clock; nonces: NonceCache },
): HubRequestCheck {
	const { headers, url = "" } = request;
	const key = one(headers["x-kvasir-key"]);
	const peer = one(headers["x-kvasir-peer"]);
	const facts = factsOf(key, {
		peer,
		...(headers["sec-websocket-key"] === undefined ? {} : { websocketKey: headers["sec-websocket-key"] }),
		...(headers.range === undefined ? {} : { range: headers.range }),
	});
	const check = checkRequest(headers.authorization, { method: "GET", path: url, facts }, parts);
	if (!check.ok) return check;
	return check.by === "secret" ? { ok: true, key, peer } : { ok: false, reason: "signature" };
}

function factsOf(key: string, { peer, websocketKey = "", range = "" }: Omit<Admitted, "key">): string[] {
	return [key, peer, websocketKey, range];
}

function one(value: string | string[] | undefined): string {
	return typeof value === "string" ? value : "";
}
