import type { Agent as HttpAgent } from "node:http";
import { createSecureContext, type SecureContext } from "node:tls";
import { HttpsProxyAgent } from "https-proxy-agent";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { type Environment, proxyOf } from "./proxy-environment.ts";

// The one place that decides how this process reaches a gateway: directly or through a proxy, and whom it trusts on the way.

/** How connections to one origin are made, for `ws` and for undici alike. */
export interface Outbound {
	/** `host:port` of the proxy in use, never with its credentials; null: none. */
	readonly proxy: string | null;
	/** Whom TLS trusts; null: what Node trusts by itself. Made once: it holds hundreds of certificates. */
	readonly secureContext: SecureContext | null;
	/** For one `ws` dial: an agent that asks the proxy to CONNECT; undefined: connect directly. `onRefused` gets the status of a proxy that did not. */
	agent(onRefused: (status: number) => void): HttpAgent | undefined;
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
	const secureContext = authorities === undefined ? null : createSecureContext({ ca: [...authorities] });
	const tls = secureContext === null ? {} : { secureContext };
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
		secureContext,
		agent(onRefused) {
			if (proxy === null) return undefined;
			const agent = new HttpsProxyAgent(proxy, { ...tls, keepAlive: false });
			agent.on("proxyConnect", ({ statusCode }: { statusCode: number }) => {
				if (statusCode !== 200) onRefused(statusCode);
			});
			return agent;
		},
		dispatcher,
		close: () => dispatcher.destroy(),
	};
}
