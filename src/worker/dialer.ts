import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type ClientOptions, WebSocket } from "ws";
import { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Outbound } from "../io/outbound.ts";
import type { Random } from "../io/random.ts";
import { signAuthorization } from "../protocol/authorization.ts";
import { limits } from "../protocol/limits.ts";
import type { Transport } from "../protocol/link.ts";
import { subprotocol } from "../protocol/messages.ts";
import { webSocketOptions, webSocketTransport } from "../protocol/websocket-transport.ts";
import { connectionError, proxyRefusal, upgradeError } from "./dial-error.ts";
import { readRefusal } from "./read-refusal.ts";

/** Opens one connection to a gateway, ready for the handshake. */
export type Dialer = (options: {
	/** Ask for this backbone among several. */
	readonly backbone?: Uint8Array | undefined;
	readonly signal?: AbortSignal | undefined;
}) => Promise<Transport>;

export interface WebSocketDialerParts {
	/** `wss://host[:port]`, or `ws://` to loopback. */
	readonly url: string;
	readonly identity: KeyPair;
	/** Name of the model to serve; absent: the hub's only one. */
	readonly model?: string | undefined;
	/** @default /v1/relay */
	readonly path?: string;
	readonly clock: Clock;
	readonly random: Random;
	/** A single-use invite, for a gateway that admits new keys only with one. */
	readonly invite?: string | undefined;
	/** Longest WebSocket frame to send. @default no limit */
	readonly fragmentBytes?: number | undefined;
	/** How the gateway is reached: proxy and trust; absent: directly, trusting what Node trusts. */
	readonly outbound?: (Pick<Outbound, "agent" | "tls"> & Partial<Pick<Outbound, "proxy">>) | undefined;
	/** Allows `ws://` beyond loopback. */
	readonly insecure?: boolean | undefined;
	/** Called when the gateway called our clock wrong and its time worked. */
	readonly onClockSkew?: (offsetSeconds: number) => void;
}

/**
 * A dialer over WebSocket. Each dial signs a new Authorization; a 401 for a wrong clock is tried once more with the gateway's time.
 * Throws `dns`, `refused`, `timeout`, `tls`, `proxy`, `network`, `auth`, `clock_skew`, `not_admitted`, `version`; `usage` at once for a bad URL.
 */
export function webSocketDialer(parts: WebSocketDialerParts): Dialer {
	const url = gatewayUrl(parts.url, parts.insecure ?? false);
	let offsetSeconds = 0;
	return async (options) => {
		try {
			return await dialOnce(parts, url, offsetSeconds, options);
		} catch (error) {
			if (!(error instanceof KvasirError) || error.code !== "clock_skew") throw error;
			const corrected = error.facts.offsetSeconds as number;
			const transport = await dialOnce(parts, url, corrected, options);
			if (corrected !== offsetSeconds) parts.onClockSkew?.(corrected);
			offsetSeconds = corrected;
			return transport;
		}
	};
}

/**
 * The checked URL of a gateway: scheme, host and port, `#KEY` at most. Throws `usage` for anything else, and for `ws://` beyond
 * loopback without `insecure`.
 */
export function gatewayUrl(text: string, insecure: boolean): URL {
	const url = URL.canParse(text) ? new URL(text) : null;
	if (url === null || (url.protocol !== "wss:" && url.protocol !== "ws:")) {
		const bare = text.replace(/^[a-z]*:?\/\//i, "").split(/[/?\s]/, 1)[0]!;
		const meant = URL.canParse(`wss://${bare}`) ? `wss://${bare}` : "wss://gate.example";
		throw new KvasirError("usage", `Cannot join "${text}": not a wss:// URL`, { hint: `For example ${meant}` });
	}
	if (url.pathname !== "/" || url.search !== "" || url.username !== "" || url.password !== "") {
		throw new KvasirError(
			"usage",
			`Cannot join "${url.protocol}//${url.host}": behind the host comes nothing but #KEY`,
			{
				hint: `For example ${url.protocol}//${url.host}${url.hash}; a gateway takes no path, user or password`,
			},
		);
	}
	if (url.protocol === "ws:" && !insecure && !isLoopback(url.hostname)) {
		throw new KvasirError("usage", `Cannot join "${text}": without TLS only on this machine`, {
			hint: "Use wss://, or --insecure if you know that the network is yours",
		});
	}
	return url;
}

function isLoopback(host: string): boolean {
	return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** What is asked of the gateway, signed now. */
function upgradeRequest(
	{ identity, model, path = "/v1/relay", clock, random, invite }: WebSocketDialerParts,
	base: URL,
	offsetSeconds: number,
	backbone: Uint8Array | undefined,
): { url: URL; headers: Record<string, string> } {
	const url = new URL(path, base);
	if (model !== undefined) url.searchParams.set("model", model);
	if (backbone !== undefined) url.searchParams.set("backbone", addressOf(backbone));
	const authorization = signAuthorization(
		{ label: "kvasir/1 relay", host: base.host, model: model ?? "" },
		{ identity, clock, random, offsetSeconds },
	);
	return { url, headers: { authorization, ...(invite === undefined ? {} : { "x-kvasir-invite": invite }) } };
}

/** From the first packet to the answer of the upgrade, whatever is on the way. */
const dialMs = 2 * limits.handshakeMs;

function dialOnce(
	parts: WebSocketDialerParts,
	base: URL,
	offsetSeconds: number,
	{ backbone, signal }: Parameters<Dialer>[0],
): Promise<Transport> {
	const { clock, fragmentBytes, outbound } = parts;
	const { url, headers } = upgradeRequest(parts, base, offsetSeconds, backbone);
	let proxyStatus: number | null = null;
	const agent = outbound?.agent((status) => {
		proxyStatus = status;
	});
	const options: ClientOptions = {
		...webSocketOptions,
		headers,
		handshakeTimeout: limits.handshakeMs,
		followRedirects: false,
		// The types of `ws` know an older shape of checkServerIdentity; it is handed on to node:tls.
		...(outbound?.tls as ClientOptions | undefined),
		...(agent === undefined ? {} : { agent }),
	};
	const failed = (error: Error) =>
		connectionError(base.host, error, proxyStatus === null ? (outbound?.proxy ?? null) : null);
	return new Promise((resolve, reject) => {
		if (signal?.aborted) {
			reject(signal.reason);
			return;
		}
		const ws = new WebSocket(url, [subprotocol], options);
		const stop = () => {
			cancelTimer();
			reject(signal?.reason);
			ws.terminate();
		};
		signal?.addEventListener("abort", stop, { once: true });
		// `ws` times the upgrade, but not a proxy that takes the connection and says nothing.
		const cancelTimer = clock.after(dialMs, () => {
			reject(failed(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })));
			ws.terminate();
		});
		const settled = () => {
			cancelTimer();
			signal?.removeEventListener("abort", stop);
		};
		let socket: Socket | null = null;
		ws.on("error", (error: Error & { code?: string }) => {
			settled();
			reject(failed(error));
		});
		ws.once("unexpected-response", (request: ClientRequest, response: IncomingMessage) => {
			const { statusCode: status = 0, headers } = response;
			void readRefusal(response, clock).then((body) => {
				settled();
				if (proxyStatus !== null && proxyStatus !== 200) reject(proxyRefusal(base.host, proxyStatus));
				else reject(upgradeError(base.host, { status, headers, body }, clock.now() / 1000));
				request.destroy();
			});
		});
		ws.once("upgrade", (response: IncomingMessage) => {
			socket = response.socket;
			// Before anything arrives: `open` follows in the same turn, and with it possibly the first message.
			ws.once("open", () => {
				settled();
				if (socket !== null) resolve(webSocketTransport(ws, socket, fragmentBytes));
			});
		});
	});
}
