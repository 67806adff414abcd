import http, { type IncomingMessage } from "node:http";
import net, { type Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../../src/io/clock.ts";
import type { KeyPair } from "../../src/io/crypto.ts";
import { systemRandom } from "../../src/io/random.ts";
import { signAuthorization } from "../../src/protocol/authorization.ts";

/** A minimal real backbone: an HTTP server that never listens, fed with sockets it parked at a hub; it echoes messages. */
export interface ParkedBackbone {
	/** The heads of the workers' requests, in order of arrival. */
	readonly requests: IncomingMessage[];
	readonly sockets: ReadonlySet<WebSocket>;
	/** Connections parked now. */
	readonly parked: number;
	close(): Promise<void>;
}

export interface ParkedBackboneOptions {
	readonly hub: { host: string; port: number };
	readonly identity: KeyPair;
	readonly model: string;
	/** Connections kept ready. */
	readonly park?: number;
	readonly onSocket?: (socket: WebSocket, raw: Socket) => void;
	readonly onRequest?: http.RequestListener;
}

/** Parks `park` connections and resolves when the hub has accepted all of them. Rejects with the hub's status when it refuses. */
export async function startParkedBackbone(options: ParkedBackboneOptions): Promise<ParkedBackbone> {
	const { park = 2, onSocket, onRequest } = options;
	const requests: IncomingMessage[] = [];
	const sockets = new Set<WebSocket>();
	const ready = new Set<Socket>();
	const all = new Set<Socket>();
	let closed = false;
	const server = http.createServer();
	const websockets = new WebSocketServer({
		noServer: true,
		perMessageDeflate: false,
		maxPayload: 16 << 20,
		handleProtocols: () => "kvasir.v1",
	});

	function used(request: IncomingMessage): void {
		requests.push(request);
		ready.delete(request.socket);
		replenish();
	}
	server.on("upgrade", (request, socket, head) => {
		used(request);
		websockets.handleUpgrade(request, socket, head, (websocket) => {
			sockets.add(websocket);
			websocket.on("error", () => {});
			websocket.on("close", () => sockets.delete(websocket));
			if (onSocket !== undefined) onSocket(websocket, socket as Socket);
			else websocket.on("message", (message, binary) => websocket.send(message, { binary }));
		});
	});
	server.on("request", (request, response) => {
		used(request);
		if (onRequest !== undefined) onRequest(request, response);
		else response.end(`backbone ${request.url}`);
	});

	async function parkOne(): Promise<void> {
		const socket = await parkSocket(options);
		if (closed) return void socket.destroy();
		all.add(socket);
		ready.add(socket);
		socket.on("error", () => {});
		socket.once("close", () => {
			all.delete(socket);
			if (ready.delete(socket)) replenish();
		});
		server.emit("connection", socket);
	}
	function replenish(): void {
		if (!closed) parkOne().catch(() => setTimeout(replenish, 50).unref());
	}
	await Promise.all(Array.from({ length: park }, parkOne));
	return {
		requests,
		sockets,
		get parked() {
			return ready.size;
		},
		async close() {
			closed = true;
			const ends = [...all].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
			for (const socket of all) socket.destroy();
			websockets.close();
			await Promise.all(ends);
		},
	};
}

/** One connection, parked: the bytes are in src/splice/park.ts. */
export function parkSocket({ hub, identity, model }: ParkedBackboneOptions): Promise<Socket> {
	return new Promise((resolve, reject) => {
		const socket = net.connect({ ...hub, noDelay: true, allowHalfOpen: true });
		const authorization = signAuthorization(
			{ label: "kvasir/1 park", host: "", model },
			{ identity, clock: systemClock, random: systemRandom },
		);
		const request = http.request({
			createConnection: () => socket,
			path: `/backbone?model=${model}`,
			headers: { Connection: "Upgrade", Upgrade: "kvasir-park", Authorization: authorization },
		});
		request.on("error", reject);
		request.once("upgrade", (_, __, head) => {
			// A waiting worker's request may have come in the same segment as the hub's answer.
			if (head.length > 0) socket.unshift(head);
			resolve(socket);
		});
		request.once("response", (response) => {
			response.resume();
			reject(new Error(`The hub refused: ${response.statusCode}`));
		});
		request.end();
	});
}
