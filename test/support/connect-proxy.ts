import http from "node:http";
import net, { type AddressInfo, type Socket } from "node:net";

/** A real CONNECT proxy on loopback that remembers what it was asked for. */
export interface ConnectProxy extends AsyncDisposable {
	readonly port: number;
	/** `host:port` of each CONNECT, in order, those refused included. */
	readonly asked: string[];
	/** Requests that were no CONNECT. */
	readonly others: string[];
	/** Cuts every tunnel that is open. */
	cut(): void;
}

/**
 * @param options.credentials `user:password` that it demands
 * @param options.names where a host of the CONNECT really is, for names that no DNS knows
 */
export async function startConnectProxy(
	options: { credentials?: string; names?: Readonly<Record<string, string>>; status?: number } = {},
): Promise<ConnectProxy> {
	const asked: string[] = [];
	const others: string[] = [];
	const sockets = new Set<Socket>();
	const keep = (socket: Socket) => {
		sockets.add(socket);
		socket.on("error", () => socket.destroy()).once("close", () => sockets.delete(socket));
	};
	const server = http.createServer((request, response) => {
		others.push(request.url ?? "");
		response.writeHead(405, { "content-length": 0 }).end();
	});
	server.on("connect", (request, stream, head) => {
		const client = stream as Socket;
		keep(client);
		asked.push(request.url ?? "");
		const expected = `Basic ${Buffer.from(options.credentials ?? "").toString("base64")}`;
		const refuse = (line: string) => client.end(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\n\r\n`);
		if (options.status !== undefined) return refuse(`${options.status} No`);
		if (options.credentials !== undefined && request.headers["proxy-authorization"] !== expected) {
			return refuse('407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="test"');
		}
		const { hostname, port } = new URL(`http://${request.url}`);
		const upstream = net.connect({
			host: options.names?.[hostname] ?? hostname,
			port: Number(port) || 80,
			noDelay: true,
		});
		keep(upstream);
		upstream.once("connect", () => {
			client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
			upstream.write(head);
			client.pipe(upstream).pipe(client);
		});
		client.once("close", () => upstream.destroy());
		upstream.once("close", () => client.destroy());
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const cut = () => {
		for (const socket of sockets) socket.destroy();
	};
	return {
		port: (server.address() as AddressInfo).port,
		asked,
		others,
		cut,
		async [Symbol.asyncDispose]() {
			cut();
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}
