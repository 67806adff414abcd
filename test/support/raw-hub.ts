import net, { type AddressInfo, type Socket } from "node:net";

/** A hub reduced to its bytes: parks every backbone that asks, and ties each other connection to a parked one. */
export interface RawHub {
	readonly port: number;
	readonly parked: Socket[];
	/** Request heads of the backbones that parked. */
	readonly heads: string[];
	/** Resolves when `count` sockets are parked. */
	untilParked(count: number): Promise<void>;
	close(): Promise<void>;
}

/**
 * @param refuse the answer to the nth (0, 1, ...) backbone that asks, instead of parking it
 */
export async function startRawHub(
	options: { refuse?: (asked: number) => string | undefined; port?: number; apiPort?: number; ledgerId?: string } = {},
): Promise<RawHub> {
	const parked: Socket[] = [];
	const heads: string[] = [];
	const sockets = new Set<Socket>();
	const waiters: (() => void)[] = [];
	const server = net.createServer({ allowHalfOpen: true }, (socket) => {
		sockets.add(socket);
		socket.setNoDelay(true);
		socket.on("error", () => {});
		socket.once("close", () => {
			sockets.delete(socket);
			if (parked.includes(socket)) parked.splice(parked.indexOf(socket), 1);
		});
		socket.once("data", (first) => {
			const head = first.toString("latin1");
			if (!head.startsWith("GET /backbone?")) return splice(socket, first);
			heads.push(head);
			const refusal = options.refuse?.(heads.length - 1);
			if (refusal !== undefined) return socket.end(refusal);
			parked.push(socket);
			socket.on("end", () => socket.destroy());
			socket.write(
				`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: kvasir-park\r\nX-Kvasir-Api: ${options.apiPort ?? 1}\r\nX-Kvasir-Ledger: ${options.ledgerId ?? "ab".repeat(16)}\r\n\r\n`,
			);
			for (const check of waiters) check();
		});
	});

	function splice(worker: Socket, first: Buffer): void {
		const backbone = parked.shift();
		if (backbone === undefined) return void worker.end("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
		backbone.removeAllListeners("end");
		const head = first.toString("latin1").replace("\r\n\r\n", `\r\nX-Kvasir-Relay: ${"cd".repeat(16)}\r\n\r\n`);
		backbone.write(Buffer.from(head, "latin1"));
		worker.pipe(backbone);
		backbone.pipe(worker);
		worker.once("close", () => backbone.destroy());
		backbone.once("close", () => worker.destroy());
	}

	await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
	return {
		port: (server.address() as AddressInfo).port,
		parked,
		heads,
		untilParked: (count) =>
			new Promise((resolve) => {
				const check = () => parked.length >= count && resolve();
				waiters.push(check);
				check();
			}),
		close() {
			const ended = new Promise<void>((resolve) => server.close(() => resolve()));
			for (const socket of sockets) socket.destroy();
			return ended;
		},
	};
}
