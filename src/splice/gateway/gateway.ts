import http from "node:http";
import https from "node:https";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { createNonceCache } from "../../protocol/nonce-cache.ts";
import type { Route } from "../http/route.ts";
import { createRouter } from "../http/router.ts";
import { type ListenAddress, type Listener, listen } from "../listener.ts";
import { within } from "../within.ts";
import { type Admission, openAdmission } from "./admission.ts";
import { type AdmitLimits, createAdmitter, defaultAdmitLimits } from "./admit.ts";
import type { GatewaySpliceParts } from "./ask-hub.ts";
import { type Certificate, useCertificate } from "./certificate.ts";
import { gatewayAdminRoutes } from "./gateway-admin.ts";
import { createGatewayMetrics } from "./gateway-metrics.ts";
import { createGatewayServer } from "./gateway-server.ts";
import { createHubWatch } from "./hub-watch.ts";
import { createLiveLinks } from "./live-links.ts";
import { ownLinksRoute } from "./own-links.ts";
import { trustedProxies } from "./peer-address.ts";
import { sweepBanned } from "./sweep-banned.ts";

export interface GatewayOptions {
	/** The public address. */
	readonly listen: ListenAddress;
	/** Health, metrics and status; never the public one. */
	readonly admin: ListenAddress;
	/** Null: plain, behind a proxy that ends TLS. */
	readonly certificate: Certificate | null;
	/** Hosts (with the port where it is not the default) that workers dial, and sign; empty: the address listened on. */
	readonly publicHosts: readonly string[];
	/** The hub's relay port. */
	readonly hub: ListenAddress;
	readonly hubSecret: Uint8Array;
	/** CIDRs of proxies that may set X-Forwarded-For. */
	readonly trustProxy?: readonly string[];
	readonly limits?: Partial<AdmitLimits>;
	readonly admission?: Admission;
	/** Public routes beside relay and slices: the wallet API. */
	readonly routes?: readonly Route[];
}

export interface GatewayParts {
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
}

/** A running gateway: admits workers and splices them to the hub, without looking into what they say. */
export interface Gateway {
	readonly address: ListenAddress;
	readonly admin: ListenAddress;
	/** Uses another certificate for connections that come from now on; links stay. Throws `tls` for one that does not fit. */
	useCertificate(certificate: Certificate): void;
	/** Takes nothing new and frees the public address; resolves when the live links are gone or after `graceMs`. */
	drain(graceMs: number): Promise<void>;
	/** Ends everything; resolves when no socket is left. */
	close(): Promise<void>;
}

/** Starts a gateway. Throws `network` when an address cannot be listened on, `tls` for a bad certificate, `usage` for a bad CIDR. */
export async function startGateway(options: GatewayOptions, { clock, random, log }: GatewayParts): Promise<Gateway> {
	const closing = new AbortController();
	const nonces = createNonceCache(clock);
	const links = createLiveLinks();
	const admission = options.admission ?? openAdmission;
	let isDraining = false;
	let listener: Listener | null = null;
	const draining = () => isDraining;
	const hubWatch = createHubWatch(options.hub, { clock, log });
	const metrics = createGatewayMetrics(links, hubWatch, () => listener?.connections ?? 0);
	let publicHosts = options.publicHosts;
	const limits = { ...defaultAdmitLimits, ...options.limits };
	const parts: GatewaySpliceParts = {
		hub: options.hub,
		hubSecret: options.hubSecret,
		hubWatch,
		admitter: createAdmitter({ publicHosts: () => publicHosts, admission, limits, clock, random, nonces }),
		proxies: trustedProxies(options.trustProxy ?? []),
		links,
		metrics,
		clock,
		random,
		log,
		closing: closing.signal,
		headMs: limits.headMs,
		draining,
	};
	const routerParts = { clock, log, nonces, closing: closing.signal };
	const routes = createRouter([ownLinksRoute(links), ...(options.routes ?? [])], routerParts);
	const server = createGatewayServer(options.certificate, routes, parts);
	const adminRoutes = gatewayAdminRoutes({ metrics, links, hubWatch, admission: admission.mode, clock, draining });
	const admin = await listen(http.createServer(createRouter(adminRoutes, routerParts)), options.admin);
	listener = await listen(server, options.listen).catch(async (error) => {
		await admin.close();
		throw error;
	});
	const { address } = listener;
	if (publicHosts.length === 0) publicHosts = ownHosts(address, options.certificate === null ? "http" : "https");
	const stopSweeping = sweepBanned(links, admission, { clock, log });
	const stopLooking = hubWatch.look();

	return {
		address,
		admin: admin.address,
		useCertificate(certificate) {
			if (server instanceof https.Server) useCertificate(server, certificate);
		},
		async drain(graceMs) {
			isDraining = true;
			listener.stop();
			await within(links.empty(), graceMs, clock);
		},
		async close() {
			isDraining = true;
			stopSweeping();
			stopLooking();
			closing.abort();
			for (const link of links) link.cut();
			await Promise.all([listener.close(), admin.close(), links.empty()]);
		},
	};
}

/** The names under which a gateway without a public host is dialled: tests and loopback. */
function ownHosts({ host, port }: ListenAddress, scheme: "http" | "https"): string[] {
	const names = [host.includes(":") ? `[${host}]` : host, "localhost", "127.0.0.1", "[::1]"];
	// As a worker writes it: without the scheme's default port.
	return names.map((name) => new URL(`${scheme}://${name}:${port}`).host);
}
