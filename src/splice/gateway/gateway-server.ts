import http, { type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { spliceLimits } from "../limits.ts";
import { internalRefusal, parserRefusal, type Refusal } from "../refusals.ts";
import { refuseResponse, refuseSocket } from "../refuse.ts";
import { readWorkerTarget } from "../targets.ts";
import { type GatewaySpliceParts, peerOf } from "./ask-hub.ts";
import { type Certificate, useCertificate } from "./certificate.ts";
import { createCounted } from "./counted.ts";
import { sliceThroughHub } from "./gateway-slice.ts";
import { spliceWorker } from "./gateway-splice.ts";
import { holdIdle, isIdlePath } from "./hold-idle.ts";
import { limitNameOf } from "./peer-address.ts";

/** Characters of a stranger's Host header that go into the log. */
const hostShownMax = 128;

function httpOptions(headMs: number) {
	return {
		maxHeaderSize: spliceLimits.requestHeadBytesMax,
		headersTimeout: headMs,
		requestTimeout: headMs,
		keepAliveTimeout: 5_000,
		connectionsCheckingInterval: Math.min(1_000, headMs),
		noDelay: true,
	};
}

/** The public server, not yet listening: upgrades, slices, and `routes` for everything else. */
export function createGatewayServer(
	certificate: Certificate | null,
	routes: RequestListener,
	parts: GatewaySpliceParts,
): http.Server | https.Server {
	const { clock, log, metrics } = parts;
	const server = certificate === null ? http.createServer(httpOptions(parts.headMs)) : tlsServer(certificate, parts);
	server.maxConnections = spliceLimits.connectionsMax;
	limitConnections(server, parts);

	function report(request: IncomingMessage | null, refusal: Refusal): void {
		metrics.request(refusal.reason);
		const peer = request === null ? undefined : peerOf(request, parts);
		// The name that was dialled explains most wrong signatures: it is not the one given with --public-host.
		const host = request?.headers.host?.slice(0, hostShownMax);
		log.info({ reason: refusal.reason, peer, host }, "refused");
	}

	server.on("upgrade", (request, stream, head) => {
		const socket = stream as Socket;
		socket.on("error", () => {});
		const outcome = (isIdlePath(request.url) ? holdIdle : spliceWorker)(request, socket, head, parts);
		void outcome
			.catch((error) => internalRefusal(error, log))
			.then((refusal) => {
				if (refusal === null) return;
				report(request, refusal);
				refuseSocket(socket, refusal, clock);
			});
	});
	server.on("request", (request: IncomingMessage, response: ServerResponse) => {
		const outcome = answerRequest(request, response, routes, parts);
		void outcome
			.catch((error) => internalRefusal(error, log))
			.then((refusal) => {
				if (refusal === null) return;
				report(request, refusal);
				refuseResponse(response, refusal);
			});
	});
	server.on("clientError", (error, stream) => {
		const refusal = parserRefusal(error);
		report(null, refusal);
		refuseSocket(stream, refusal, clock);
	});
	server.on("tlsClientError", () => metrics.request("tls_handshake"));
	server.on("drop", () => metrics.request("connections_full"));
	return server;
}

function tlsServer(certificate: Certificate, { headMs }: GatewaySpliceParts): https.Server {
	const server = https.createServer({
		...httpOptions(headMs),
		handshakeTimeout: spliceLimits.tlsHandshakeMs,
		// An end in one direction leaves the other, as on plain sockets.
		allowHalfOpen: true,
	} as https.ServerOptions);
	useCertificate(server, certificate);
	return server;
}

/** A plain request: a manifest or slice of an admitted worker, or one of the gateway's own routes. */
async function answerRequest(
	request: IncomingMessage,
	response: ServerResponse,
	routes: RequestListener,
	parts: GatewaySpliceParts,
): Promise<Refusal | null> {
	const target = readWorkerTarget(request.url ?? "");
	if (!("reason" in target)) {
		if (target.kind === "relay") return { reason: "upgrade" };
		return sliceThroughHub(request, response, target, parts);
	}
	if (target.reason !== "path") return target;
	const refusal = parts.admitter.plain(peerOf(request, parts));
	if (refusal === null) routes(request, response);
	return refusal;
}

/** Closes connections of an address that holds too many without a link; a trusted proxy's are everybody's, so not limited here. */
function limitConnections(server: http.Server, { proxies, admitter, metrics }: GatewaySpliceParts): void {
	const connections = createCounted(Number.POSITIVE_INFINITY);
	server.on("connection", (socket: Socket) => {
		const { remoteAddress } = socket;
		if (remoteAddress === undefined || proxies.trusts(remoteAddress)) return;
		const name = limitNameOf(proxies.peerOf(remoteAddress, undefined));
		const release = connections.take(name)!;
		socket.once("close", release);
		if (connections.of(name) - admitter.addresses.of(name) <= spliceLimits.unadmittedPerAddressMax) return;
		metrics.request("connections_per_address");
		socket.destroy();
	});
}
