import type { Clock } from "../../io/clock.ts";
import { metricsRoute } from "../http/metrics-route.ts";
import type { Route } from "../http/route.ts";
import type { HubMetrics } from "./hub-metrics.ts";
import type { ParkedSockets } from "./parked.ts";
import type { RelayMeter } from "./relay-meter.ts";

/** Relays listed in one status answer. */
const statusRelaysMax = 1_000;

/** The hub's own routes on its API port: health and metrics for anyone on the LAN, status for the gateway and listed backbones. */
export function hubAdminRoutes({
	metrics,
	meter,
	parked,
	clock,
}: {
	metrics: HubMetrics;
	meter: RelayMeter;
	parked: ParkedSockets | null;
	clock: Clock;
}): Route[] {
	const startedAtMs = clock.now();
	return [
		{ method: "GET", path: "/health", caller: "anyone", handle: () => ({ status: 200, json: { status: "ok" } }) },
		metricsRoute(metrics.registry),
		{
			method: "GET",
			path: "/status",
			caller: "gateway",
			handle: () => ({
				status: 200,
				json: {
					startedAtMs,
					parked: parked?.counts() ?? [],
					waiting: parked?.waiting ?? 0,
					relays: meter.counts().slice(0, statusRelaysMax),
					relayCount: meter.counts().length,
				},
			}),
		},
	];
}
