import type { Agent as HttpAgent } from "node:http";
import { checkServerIdentity, createSecureContext, type PeerCertificate, type SecureContext } from "node:tls";
import { HttpsProxyAgent } from "https-proxy-agent";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { type Environment, proxyOf } from "./proxy-environment.ts";

// The one place that decides how this process reaches a gateway: directly or through a proxy, and whom it trusts on the way.

export interface OutboundTls {
	/** Absent: what Node trusts by itself. Made once: it holds hundreds of certificates. */
	readonly secureContext?: SecureContext;
	/** Behind a proxy Node would compare the certificate of a gateway named by its address with "localhost". */
	readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
}

/** How connections to one origin are made, for `ws` and for undici alike. */
export interface Outbound {
	/** `host:port` of the proxy in use, never with its credentials; null: none. */
	readonly proxy: string | null;
	/** For `ws` and node:https: whom TLS trusts, and whose certificate it has to be. */
	readonly tls: OutboundTls;
	/** For one `ws` dial: an agent that asks the proxy to CONNECT; undefined: connect directly. `onAnswer` gets the proxy's status, 200 once it let us through. */
	agent(onAnswer: (status: number) => void): HttpAgent | undefined;
	/** For undici: plain HTTP goes through CONNECT too. */
	readonly dispatcher: Dispatcher;
	close(): Promise<void>;
}

export interface OutboundOptions {
	readonly env: Environment;
	/** PEM texts; absent: what Node trusts by itself. */
	readonly authorities?: readonly string[];
	/** Milliseconds for a connection to come about. */
	readonly connectMs?: number;
}

const connectMsDefault = 10_000;

/** Decides by the environment how `url`'s origin is reached. Throws `proxy` for a proxy variable that names none. */
export function openOutbound(url: URL, options: OutboundOptions): Outbound {
	const { env, authorities, connectMs = connectMsDefault } = options;
	const proxy = proxyOf(url, env);
	const tls = authorities === undefined ? {} : { secureContext: createSecureContext({ ca: [...authorities] }) };
	const host = url.hostname.replace(/^\[|\]$/g, "");
	const dispatcher =
		proxy === null
			? new Agent({ connect: { ...tls, timeout: connectMs } })
			: new ProxyAgent({
					uri: proxy.href,
					proxyTunnel: true,
					requestTls: { ...tls, timeout: connectMs },
					proxyTls: { ...tls, timeout: connectMs },
				});
	return {
		proxy: proxy === null ? null : proxy.host,
		tls: { ...tls, checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate) },
		agent(onAnswer) {
			if (proxy === null) return undefined;
			const agent = new HttpsProxyAgent(proxy, { ...tls, keepAlive: false });
			agent.on("proxyConnect", ({ statusCode }: { statusCode: number }) => {
				onAnswer(statusCode);
			});
			return agent;
		},
		dispatcher,
		close: () => dispatcher.destroy(),
	};
}
