import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../io/clock.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { NonceCache } from "../protocol/nonce-cache.ts";
import { forwardResponse } from "./forward-response.ts";
import { goneSignal } from "./gone-signal.ts";
import type { HubMetrics } from "./hub-metrics.ts";
import { checkHubRequest } from "./hub-request.ts";
import { spliceLimits } from "./limits.ts";
import { type ParkParts, park } from "./park.ts";
import type { BackboneSource } from "./parked.ts";
import { internalRefusal, later, parserRefusal, type Refusal, refuseResponse, refuseSocket } from "./refusals.ts";
import { askBackbone, countingFrom, type RelayedWorker } from "./relay.ts";
import type { RelayMeter } from "./relay-meter.ts";
import { readWorkerTarget } from "./targets.ts";
import { tie } from "./tie.ts";
import { acceptsUpgrade, carriesBody, readUpgrade, switchingHead } from "./websocket-upgrade.ts";

// The hub's relay port. It speaks to two kinds of peers, each proved before anything happens: backbones that park connections
// (park.ts shows the bytes) and the gateway, which vouches for workers (hub-request.ts). Workers' streams are never looked into.

export interface HubRelayParts {
	readonly source: BackboneSource;
	/** Null where backbones are dialled: nobody parks then. */
	readonly park: ParkParts | null;
	readonly secret: Uint8Array;
	readonly meter: RelayMeter;
	readonly metrics: HubMetrics;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly nonces: NonceCache;
	readonly closing: AbortSignal;
}

/** The server of the relay port, not yet listening. */
export function createHubRelayServer(parts: HubRelayParts): http.Server {
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
		void relay(request, socket, head, parts)
			.catch((error) => internalRefusal(error, log))
			.then((refusal) => {
				if (refusal !== null) refused(socket, refusal);
			});
	});
	server.on("request", (request, response) => {
		void fetchSlice(request, response, parts)
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

/** Ties a worker to a backbone; resolves with why not, or with null once it is tied (or gone). */
async function relay(
	request: IncomingMessage,
	socket: Socket,
	head: Buffer,
	parts: HubRelayParts,
): Promise<Refusal | null> {
	const { meter, metrics, clock, random, log } = parts;
	const upgrade = readUpgrade(request);
	if ("reason" in upgrade) return upgrade;
	const worker = readWorker(request, parts, upgrade.key);
	if ("reason" in worker) return worker;
	if (worker.target.kind !== "relay") return { reason: "path" };
	const gone = goneSignal(socket, parts.closing);
	const asked = await askBackbone(worker, parts.source, { clock, random, signal: gone });
	if (!asked.ok) return later(asked.reason, random);
	const { relayId, from, answer } = asked;
	if (answer.kind !== "switched" || !acceptsUpgrade(answer.response, upgrade.key)) {
		from.socket.destroy();
		return later("backbone_refused", random);
	}
	const bytes = countingFrom(answer.socket, answer.rest);
	const relayed = meter.begin(
		{ relay: relayId, worker: worker.key, backbone: from.backbone, model: from.model },
		bytes,
	);
	metrics.request("relayed");
	log.info(
		{ relay: relayId, worker: worker.key, peer: worker.peer, backbone: from.backbone, model: from.model },
		"relay opened",
	);
	socket.write(switchingHead(upgrade.key));
	if (answer.rest.length > 0) socket.write(answer.rest);
	if (head.length > 0) answer.socket.write(head);
	void tie(socket, answer.socket, { clock, idleMs: spliceLimits.idleMs, halfClosedMs: spliceLimits.halfClosedMs }).then(
		async (end) => {
			const count = relayed.count();
			relayed.end();
			log.info(
				{ relay: relayId, worker: worker.key, end, up: count.bytesFromWorker, down: count.bytesToWorker },
				"relay closed",
			);
		},
	);
	return null;
}

/** A manifest or a slice, over a backbone's socket as plain HTTP. */
async function fetchSlice(
	request: IncomingMessage,
	response: ServerResponse,
	parts: HubRelayParts,
): Promise<Refusal | null> {
	const { clock, random, metrics } = parts;
	if (request.method !== "GET") return { reason: "method" };
	if (carriesBody(request)) return { reason: "body" };
	const worker = readWorker(request, parts);
	if ("reason" in worker) return worker;
	if (worker.target.kind === "relay") return { reason: "upgrade" };
	const gone = goneSignal(request.socket, parts.closing);
	const asked = await askBackbone(worker, parts.source, { clock, random, signal: gone });
	if (!asked.ok) return later(asked.reason, random);
	const { answer } = asked;
	const bytes = answer.kind === "plain" ? await forwardResponse(answer.response, response) : null;
	asked.from.socket.destroy();
	if (bytes === null) return { reason: "backbone_answer" };
	metrics.request("slice");
	return null;
}

function readWorker(request: IncomingMessage, parts: HubRelayParts, websocketKey?: string): RelayedWorker | Refusal {
	const check = checkHubRequest(request, parts);
	if (!check.ok) return { reason: check.reason };
	const target = readWorkerTarget(request.url ?? "");
	if ("reason" in target) return target;
	const { range } = request.headers;
	return {
		target,
		key: check.key,
		peer: check.peer,
		...(websocketKey === undefined ? {} : { websocketKey }),
		...(range === undefined ? {} : { range }),
	};
}
