import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { addressOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import { checkAuthorization } from "../../protocol/authorization.ts";
import type { NonceCache } from "../../protocol/nonce-cache.ts";
import { carriesBody } from "../http/websocket-upgrade.ts";
import { type Refusal, timeHeader } from "../refusals.ts";
import { readParkTarget } from "../targets.ts";
import type { ParkedSockets } from "./parked.ts";

// How a backbone parks a connection at the hub's relay port:
//
//   GET /backbone?model=NAME HTTP/1.1
//   Host: hub                                             (any)
//   Connection: Upgrade
//   Upgrade: kvasir-park
//   Authorization: Kvasir1 <base58 key>.<unix seconds>.<nonce>.<signature>
//                                                         (label `kvasir/1 park`, the hub's ledgerId or empty, NAME)
//
//   HTTP/1.1 101 Switching Protocols
//   Connection: Upgrade
//   Upgrade: kvasir-park
//   X-Kvasir-Api: <port of the hub's API>
//   X-Kvasir-Ledger: <ledgerId>
//
// Nothing follows until a worker comes: then one request head in the form of relay.ts, and after the backbone's 101 raw bytes
// both ways. Where a worker was waiting already its request comes in the same segment as the hub's answer: with node:http the
// backbone puts back the `head` of its 'upgrade' event (`socket.unshift(head)`) before it hands the socket to its own server. A connection serves one request. Until then the backbone may close it, and must send nothing. It should be dialled
// with `allowHalfOpen`, so that an end in one direction leaves the other. Refused: 400, 401 (`skew` with X-Kvasir-Time), 403 for
// a key that is not on the hub's list, 429 beyond the number one backbone may park.

export interface ParkParts {
	readonly parked: ParkedSockets;
	readonly backboneKeys: ReadonlySet<string>;
	readonly ledgerId: string;
	readonly clock: Clock;
	readonly nonces: NonceCache;
	/** The port of the hub's API. */
	apiPort(): number;
}

/** Parks the connection of a listed backbone, or says why not. */
export function park(request: IncomingMessage, socket: Socket, head: Buffer, parts: ParkParts): Refusal | null {
	const { parked, backboneKeys, ledgerId, clock, nonces, apiPort } = parts;
	const model = readParkTarget(request.url ?? "");
	if (model === null || carriesBody(request) || head.length > 0) return { reason: "park" };
	const { authorization } = request.headers;
	const subject = { label: "kvasir/1 park", model } as const;
	let check = checkAuthorization(authorization, { ...subject, host: ledgerId }, { clock, nonces });
	// On first contact a backbone does not know which ledger this hub keeps.
	if (!check.ok && check.reason === "signature") {
		check = checkAuthorization(authorization, { ...subject, host: "" }, { clock, nonces });
	}
	if (!check.ok) {
		const headers = check.reason === "skew" ? timeHeader(clock) : {};
		return { reason: check.reason, headers };
	}
	const backbone = addressOf(check.key);
	if (!backboneKeys.has(backbone)) return { reason: "not_listed" };
	socket.setKeepAlive(true, 30_000);
	socket.setNoDelay(true);
	const head101 = [
		"HTTP/1.1 101 Switching Protocols",
		"Connection: Upgrade",
		"Upgrade: kvasir-park",
		`X-Kvasir-Api: ${apiPort()}`,
		`X-Kvasir-Ledger: ${ledgerId}`,
		"\r\n",
	].join("\r\n");
	// Written before it is parked: a waiting worker's request may follow at once.
	if (!parked.mayAdd(backbone)) return { reason: "parked_full" };
	socket.write(head101);
	parked.add({ socket, backbone, model });
	return null;
}
