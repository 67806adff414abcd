import type { Socket } from "node:net";
import { WebSocket } from "ws";
import type { Transport } from "../../src/protocol/link.ts";
import { subprotocol } from "../../src/protocol/messages.ts";
import { webSocketOptions, webSocketTransport } from "../../src/protocol/websocket-transport.ts";

/** Dials a relay on loopback as a worker does; rejects with what refused it. */
export function dialRelay(port: number, path = "/v1/relay", protocols = [subprotocol]): Promise<Transport> {
	return new Promise((resolve, reject) => {
		const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, webSocketOptions);
		let socket: Socket;
		ws.once("upgrade", (response) => {
			socket = response.socket as Socket;
		});
		ws.once("error", reject);
		ws.once("open", () => {
			ws.removeListener("error", reject);
			resolve(webSocketTransport(ws, socket));
		});
	});
}
