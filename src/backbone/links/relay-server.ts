import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { Logger } from "../../io/log.ts";
import type { Transport } from "../../protocol/link.ts";
import { subprotocol } from "../../protocol/messages.ts";
import { webSocketOptions, webSocketTransport } from "../../protocol/websocket-transport.ts";
import type { Arrived } from "./reception.ts";

/** A request's head has to be complete this long after its first byte. */
const headMs = 10_000;
/** Connections at once, whatever their state. */
const connectionsMax = 16_384;

export interface RelayServerParts {
	/** Takes an upgraded connection through the handshake. */
	readonly receive: (transport: Transport, from: Arrived) => unknown;
	/** Answers plain requests (manifest, slices); absent: 404. */
	readonly serve?: (request: IncomingMessage, response: ServerResponse) => void;
	readonly log: Logger;
}

export interface RelayServer {
	/** Never listens by itself: `listen.ts` may, and parked sockets are handed to it. */
	readonly http: http.Server;
	/** Serves a connected socket as if it had been accepted here. */
	adopt(socket: Socket): void;
	/** Ends every connection that is not a worker's link, and refuses new ones. */
	close(): Promise<void>;
}

/** The backbone's one HTTP server: upgrades `/v1/relay` to the protocol, and answers slices. Parked and dialled connections are the same code. */
export function createRelayServer({ receive, serve, log }: RelayServerParts): RelayServer {
	const webSockets = new WebSocketServer({
		...webSocketOptions,
		noServer: true,
		clientTracking: false,
		handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
	});
	const sockets = new Set<Socket>();
	let closed = false;
	const server = http.createServer({
		headersTimeout: headMs,
		requestTimeout: headMs,
		noDelay: true,
		keepAliveTimeout: 1,
	});
	server.maxConnections = connectionsMax;

	server.on("connection", (socket) => {
		socket.on("error", (error) => log.debug({ error: error.message }, "connection failed"));
		sockets.add(socket);
		socket.once("close", () => sockets.delete(socket));
		if (closed) socket.destroy();
	});
	server.on("clientError", (error, socket) => {
		log.debug({ error: error.message }, "bad request");
		refuse(socket, 400, "Bad Request");
	});
	server.on("upgrade", (request, stream, head) => {
		const socket = stream as Socket;
		if (closed) return refuse(socket, 503, "Service Unavailable");
		if (pathOf(request) !== "/v1/relay") return refuse(socket, 404, "Not Found");
		if (!offersSubprotocol(request)) return refuse(socket, 426, "Upgrade Required");
		webSockets.handleUpgrade(request, socket, head, (webSocket) => {
			// From here the link owns it, and ends it with a close code.
			sockets.delete(socket);
			receive(webSocketTransport(webSocket, socket), {
				relay: headerOf(request, "x-kvasir-relay") ?? "",
				admitted: headerOf(request, "x-kvasir-key") ?? null,
			});
		});
	});
	server.on("request", (request, response) => {
		request.on("error", () => {});
		response.on("error", () => {});
		if (serve !== undefined) return serve(request, response);
		response.writeHead(404, { "content-length": 0 }).end();
	});

	return {
		http: server,
		adopt(socket) {
			server.emit("connection", socket);
		},
		async close() {
			closed = true;
			webSockets.close();
			const listening = server.listening;
			const ended = new Promise<void>((resolve) => (listening ? server.close(() => resolve()) : resolve()));
			for (const socket of sockets) socket.destroy();
			await ended;
		},
	};
}

function pathOf(request: IncomingMessage): string {
	return (request.url ?? "").split("?", 1)[0]!;
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
	const value = request.headers[name];
	return typeof value === "string" && value.length <= 64 ? value : undefined;
}

function offersSubprotocol(request: IncomingMessage): boolean {
	const offered = request.headers["sec-websocket-protocol"] ?? "";
	return offered.split(",").some((name) => name.trim() === subprotocol);
}

function refuse(socket: Duplex, status: number, text: string): void {
	if (!socket.writable) return void socket.destroy();
	socket.end(`HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
