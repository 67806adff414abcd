import http from "node:http";
import https from "node:https";
import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import { createNonceCache } from "../protocol/nonce-cache.ts";
import { type Admission, openAdmission } from "./admission.ts";
import { type AdmitLimits, createAdmitter, defaultAdmitLimits } from "./admit.ts";
import type { GatewaySpliceParts } from "./ask-hub.ts";
import { gatewayAdminRoutes } from "./gateway-admin.ts";
import { createGatewayMetrics } from "./gateway-metrics.ts";
import { type Certificate, createGatewayServer } from "./gateway-server.ts";
import { spliceLimits } from "./limits.ts";
import { type ListenAddress, type Listener, listen } from "./listener.ts";
import { createLiveLinks, type LiveLinks } from "./live-links.ts";
import { ownLinksRoute } from "./own-links.ts";
import { trustedProxies } from "./peer-address.ts";
import type { Route } from "./route.ts";
import { createRouter } from "./router.ts";
import { within } from "./within.ts";

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

/** Starts a gateway. Throws `network` when an address cannot be listened on, `usage` for a bad CIDR. */
export async function startGateway(options: GatewayOptions, { clock, random, log }: GatewayParts): Promise<Gateway> {
	const closing = new AbortController();
	const nonces = createNonceCache(clock);
	const links = createLiveLinks();
	const admission = options.admission ?? openAdmission;
	let isDraining = false;
	let listener: Listener | null = null;
	const draining = () => isDraining;
	const metrics = createGatewayMetrics(links, () => listener?.connections ?? 0);
	const publicHosts = () => (options.publicHosts.length > 0 ? options.publicHosts : ownHosts(listener?.address));
	const limits = { ...defaultAdmitLimits, ...options.limits };
	const parts: GatewaySpliceParts = {
		hub: options.hub,
		hubSecret: options.hubSecret,
		admitter: createAdmitter({ publicHosts, admission, limits, clock, random, nonces }),
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
	const adminRoutes = gatewayAdminRoutes({ metrics, links, admission: admission.mode, clock, draining });
	const adminServer = http.createServer(
		{ headersTimeout: spliceLimits.headMs, requestTimeout: spliceLimits.headMs },
		createRouter(adminRoutes, routerParts),
	);
	const admin = await listen(adminServer, options.admin);
	listener = await listen(server, options.listen).catch(async (error) => {
		await admin.close();
		throw error;
	});
	const { address } = listener;
	const stopSweeping = sweepBanned(links, admission, { clock, log });

	return {
		address,
		admin: admin.address,
		useCertificate(certificate) {
			if (!(server instanceof https.Server)) return;
			try {
				server.setSecureContext({ ...certificate, minVersion: "TLSv1.2" });
			} catch (cause) {
				throw new KvasirError("tls", `Cannot use the certificate: ${(cause as Error).message}`, {
					cause,
					hint: "Certificate and key must be PEM and belong together",
				});
			}
		},
		async drain(graceMs) {
			isDraining = true;
			listener.stop();
			await within(links.empty(), graceMs, clock);
		},
		async close() {
			isDraining = true;
			stopSweeping();
			closing.abort();
			for (const link of links) link.cut();
			await Promise.all([listener.close(), admin.close(), links.empty()]);
		},
	};
}

/** Ends the links of keys that were banned while they were linked. */
function sweepBanned(
	links: LiveLinks,
	admission: Admission,
	{ clock, log }: Pick<GatewayParts, "clock" | "log">,
): () => void {
	let cancel = clock.after(spliceLimits.banSweepMs, sweep);
	let stopped = false;
	async function sweep(): Promise<void> {
		const banned = new Set(await admission.bannedOf([...new Set([...links].map(({ key }) => key))]));
		for (const link of links) {
			if (!banned.has(link.key)) continue;
			log.info({ key: link.key, peer: link.peer }, "link cut: its key is banned");
			link.cut();
		}
		if (!stopped) cancel = clock.after(spliceLimits.banSweepMs, sweep);
	}
	return () => {
		stopped = true;
		cancel();
	};
}

/** The names under which a gateway without a public host is dialled: tests and loopback. */
function ownHosts(address: ListenAddress | undefined): string[] {
	if (address === undefined) return [];
	const { host, port } = address;
	return [`${host}:${port}`, `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`];
}
