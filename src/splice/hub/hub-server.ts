import http from "node:http";
import type { Socket } from "node:net";
import { spliceLimits } from "../limits.ts";
import { internalRefusal, parserRefusal, type Refusal } from "../refusals.ts";
import { refuseResponse, refuseSocket } from "../refuse.ts";
import { type HubRelayParts, relayWorker } from "./hub-relay.ts";
import { relaySlice } from "./hub-slice.ts";
import { type ParkParts, park } from "./park.ts";

// The hub's relay port. It speaks to two kinds of peers, each proved before anything happens: backbones that park connections
// (park.ts shows the bytes) and the gateway, which vouches for workers (hub-request.ts). Workers' streams are never looked into.

/** The server of the relay port, not yet listening. */
export function createHubServer(parts: HubRelayParts & { readonly park: ParkParts | null }): http.Server {
	const { clock, log, metrics } = parts;
	const server = http.createServer({
		maxHeaderSize: spliceLimits.requestHeadBytesMax * 2,
		headersTimeout: spliceLimits.headMs,
		requestTimeout: spliceLimits.headMs,
		connectionsCheckingInterval: 1_000,
		noDelay: true,
	});
	server.maxConnections = spliceLimits.connectionsMax;

	function report(socket: Socket, refusal: Refusal): void {
		metrics.request(refusal.reason);
		log.warn({ reason: refusal.reason, from: socket.remoteAddress }, "refused at the relay port");
	}

	function refused(socket: Socket, refusal: Refusal): void {
		report(socket, refusal);
		refuseSocket(socket, refusal, clock);
	}

	server.on("upgrade", (request, stream, head) => {
		const socket = stream as Socket;
		socket.on("error", () => {});
		if (parts.park !== null && request.headers.upgrade?.toLowerCase() === "kvasir-park") {
			const refusal = park(request, socket, head, parts.park);
			if (refusal !== null) return refused(socket, refusal);
			return metrics.request("parked");
		}
		void relayWorker(request, socket, head, parts)
			.catch((error) => internalRefusal(error, log))
			.then((refusal) => {
				if (refusal !== null) refused(socket, refusal);
			});
	});
	server.on("request", (request, response) => {
		void relaySlice(request, response, parts)
			.catch((error) => internalRefusal(error, log))
			.then((refusal) => {
				if (refusal === null) return;
				report(request.socket, refusal);
				refuseResponse(response, refusal);
			});
	});
	server.on("clientError", (error, stream) => refused(stream as Socket, parserRefusal(error)));
	return server;
}
