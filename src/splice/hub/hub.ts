import http from "node:http";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { createNonceCache } from "../../protocol/nonce-cache.ts";
import type { Route } from "../http/route.ts";
import { createRouter } from "../http/router.ts";
import { spliceLimits } from "../limits.ts";
import { type ListenAddress, listen } from "../listener.ts";
import { within } from "../within.ts";
import { dialledBackbone } from "./dialled.ts";
import { hubAdminRoutes } from "./hub-admin.ts";
import { createHubMetrics } from "./hub-metrics.ts";
import { createHubServer } from "./hub-server.ts";
import { ParkedSockets } from "./parked.ts";
import { createRelayMeter, type RelayMeter, type RelayStore } from "./relay-meter.ts";

export interface HubOptions {
	/** LAN address for the gateway and for backbones that park. */
	readonly relay: ListenAddress;
	/** Another one for ledger, admin and metrics. */
	readonly api: ListenAddress;
	/** Shared with the gateway. */
	readonly secret: Uint8Array;
	/** Base58 keys, in order of preference: whose connections may be parked and whose receipts count. */
	readonly backboneKeys: readonly string[];
	readonly ledgerId: string;
	/** Dial this backbone instead of waiting for parked connections. */
	readonly dispatch?: ListenAddress;
	/** The ledger's routes of the API port, given the meter that bounds what receipts may claim. */
	readonly routes?: (meter: RelayMeter) => readonly Route[];
}

export interface HubParts {
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly relays: RelayStore;
}

/** A running hub: ties workers to backbones, counts what passes, and carries the ledger's API. */
export interface Hub {
	readonly relay: ListenAddress;
	readonly api: ListenAddress;
	/** Takes no new workers; resolves when the live ones are gone or after `graceMs`. */
	drain(graceMs: number): Promise<void>;
	/** Ends everything; resolves when no socket is left and all counters are stored. */
	close(): Promise<void>;
}

/** Starts a hub. Throws `network` when an address cannot be listened on. */
export async function startHub(options: HubOptions, { clock, random, log, relays }: HubParts): Promise<Hub> {
	const closing = new AbortController();
	const nonces = createNonceCache(clock);
	const backboneKeys = new Set(options.backboneKeys);
	const meter = createRelayMeter(relays, { clock, log });
	const parked = options.dispatch === undefined ? new ParkedSockets(clock, options.backboneKeys) : null;
	const source = options.dispatch === undefined ? parked! : dialledBackbone(options.dispatch, clock);
	const metrics = createHubMetrics(meter, parked);

	const routes = [...hubAdminRoutes({ metrics, meter, parked, clock }), ...(options.routes?.(meter) ?? [])];
	const router = createRouter(routes, {
		clock,
		log,
		nonces,
		secret: options.secret,
		backboneKeys,
		closing: closing.signal,
	});
	const apiServer = http.createServer(
		{ headersTimeout: spliceLimits.headMs, requestTimeout: spliceLimits.headMs * 3 },
		router,
	);
	const api = await listen(apiServer, options.api);

	const parking = parked && {
		parked,
		backboneKeys,
		ledgerId: options.ledgerId,
		clock,
		nonces,
		apiPort: () => api.address.port,
	};
	const common = { clock, random, log, nonces, closing: closing.signal };
	const server = createHubServer({ source, park: parking, secret: options.secret, meter, metrics, ...common });
	const relay = await listen(server, options.relay).catch(async (error) => {
		meter.stop();
		await api.close();
		throw error;
	});

	return {
		relay: relay.address,
		api: api.address,
		async drain(graceMs) {
			relay.stop();
			await within(meter.settled(), graceMs, clock);
		},
		async close() {
			closing.abort();
			parked?.close();
			await Promise.all([relay.close(), api.close()]);
			meter.stop();
			await meter.settled();
		},
	};
}
