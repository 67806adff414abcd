import net from "node:net";

/** What a raw exchange ended with. */
export interface RawAnswer {
	/** Everything the peer sent until it ended, latin1. */
	readonly text: string;
	/** Status of the first answer; 0 for none. */
	readonly status: number;
	readonly retryAfter: number | null;
}

/** Writes bytes as they are, reads until the peer ends or resets, or `ms` passed. */
export function rawExchange(
	{ host, port }: { host: string; port: number },
	bytes: string | Uint8Array,
	{ ms = 5_000 } = {},
): Promise<RawAnswer> {
	return new Promise((resolve) => {
		const socket = net.connect({ host, port, noDelay: true });
		let text = "";
		const timer = setTimeout(() => socket.destroy(), ms);
		socket.on("error", () => {});
		socket.on("data", (part) => {
			text += part.toString("latin1");
		});
		socket.on("close", () => {
			clearTimeout(timer);
			const retryAfter = /\r\nretry-after: (\d+)\r\n/i.exec(text)?.[1];
			resolve({
				text,
				status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0),
				retryAfter: retryAfter === undefined ? null : Number(retryAfter),
			});
		});
		socket.write(bytes);
	});
}

/** The head of an upgrade as a worker sends it; a header set to null is left out, an extra one is added. */
export function upgradeHead(
	host: string,
	headers: Record<string, string | null>,
	{ method = "GET", path = "/v1/relay?model=tiny" } = {},
): string {
	const all: Record<string, string | null> = {
		Host: host,
		Connection: "Upgrade",
		Upgrade: "websocket",
		"Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol": "kvasir.v1",
		...headers,
	};
	const lines = Object.entries(all).filter(([, value]) => value !== null);
	return `${[`${method} ${path} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`;
}
