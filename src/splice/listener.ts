import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import { KvasirError } from "../errors.ts";

/** An address to listen on; port 0 asks for any free one. */
export interface ListenAddress {
	readonly host: string;
	readonly port: number;
}

/** A server that knows its sockets, so that closing it leaves none. */
export interface Listener {
	readonly address: ListenAddress;
	/** Accepts nothing new; what is open stays. */
	stop(): void;
	/** Ends everything at once; resolves when the last socket is closed. */
	close(): Promise<void>;
	readonly connections: number;
}

/** Starts listening. Throws `network` with the address when it cannot. */
export async function listen(server: Server, { host, port }: ListenAddress): Promise<Listener> {
	const sockets = new Set<Duplex>();
	const track = (socket: Duplex) => {
		sockets.add(socket);
		// Before the first write, on every socket, whatever happens to it later.
		socket.on("error", () => {});
		socket.once("close", () => sockets.delete(socket));
	};
	server.on("connection", track);
	// A TLS server hands out a second object for the same connection.
	server.on("secureConnection", track);
	await new Promise<void>((resolve, reject) => {
		server.once("error", (cause: NodeJS.ErrnoException) => {
			reject(
				new KvasirError("network", `Cannot listen on ${host}:${port}: ${cause.code ?? cause.message}`, {
					cause,
					hint: listenHint(cause.code),
				}),
			);
		});
		server.listen({ host, port }, () => resolve());
	});
	server.on("error", () => {});
	const bound = server.address();
	let stopped: Promise<void> | null = null;
	const stop = () => {
		stopped ??= new Promise<void>((resolve) => server.close(() => resolve()));
		return stopped;
	};
	return {
		address: { host, port: typeof bound === "object" && bound !== null ? bound.port : port },
		stop: () => void stop(),
		async close() {
			const closed = stop();
			const ends = [...sockets].map((socket) => new Promise<void>((resolve) => socket.once("close", () => resolve())));
			for (const socket of sockets) socket.destroy();
			await Promise.all([closed, ...ends]);
		},
		get connections() {
			return sockets.size;
		},
	};
}

function listenHint(code: string | undefined): string {
	if (code === "EACCES") return "Ports below 1024 need a privilege: use another port, or allow this one to Node";
	if (code === "EADDRINUSE")
		return "Another process has this port: stop it, or listen on another one (0 is any free one)";
	return "Check that the address belongs to this machine";
}
