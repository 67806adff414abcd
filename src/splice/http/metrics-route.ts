import type { Registry } from "prom-client";
import type { Route } from "./route.ts";

/** `GET /metrics`, in Prometheus' text format. */
export function metricsRoute(registry: Registry): Route {
	return {
		method: "GET",
		path: "/metrics",
		caller: "anyone",
		handle: async () => ({ status: 200, text: await registry.metrics(), type: registry.contentType }),
	};
}
