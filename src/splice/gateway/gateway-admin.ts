import type { Clock } from "../../io/clock.ts";
import { metricsRoute } from "../http/metrics-route.ts";
import type { Route } from "../http/route.ts";
import type { AdmissionMode } from "./admission.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { HubWatch } from "./hub-watch.ts";
import type { LiveLinks } from "./live-links.ts";

/** Links listed in one status answer. */
const statusLinksMax = 1_000;

/** Health, metrics and status, for the admin address alone. */
export function gatewayAdminRoutes({
	metrics,
	links,
	hubWatch,
	admission,
	clock,
	draining,
}: {
	metrics: GatewayMetrics;
	links: LiveLinks;
	hubWatch: HubWatch;
	admission: AdmissionMode;
	clock: Clock;
	draining: () => boolean;
}): Route[] {
	const startedAtMs = clock.now();
	return [
		{
			method: "GET",
			path: "/health",
			caller: "anyone",
			handle: () =>
				draining() ? { status: 503, json: { status: "draining" } } : { status: 200, json: { status: "ok" } },
		},
		metricsRoute(metrics.registry),
		{
			method: "GET",
			path: "/status",
			caller: "anyone",
			handle: () => ({
				status: 200,
				json: {
					startedAtMs,
					admission,
					draining: draining(),
					hub: hubWatch.state,
					linkCount: links.size,
					links: [...links].slice(0, statusLinksMax).map(({ key, peer, model, openedAtMs, bytes }) => ({
						key,
						peer,
						model,
						openedAtMs,
						bytes: bytes(),
					})),
				},
			}),
		},
	];
}
