import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { addLimits } from "../hub/hub-metrics.ts";
import type { RefusalReason } from "../refusals.ts";
import type { HubWatch } from "./hub-watch.ts";
import type { LiveLinks } from "./live-links.ts";

/** What became of a connection or a request at the public port. */
export type GatewayOutcome =
	| RefusalReason
	| "spliced"
	| "slice"
	| "idle"
	| "tls_handshake"
	| "connections_per_address"
	| "connections_full";

/** The gateway's metrics, in a registry of its own. */
export interface GatewayMetrics {
	readonly registry: Registry;
	/** A request at the public port: `spliced`, `slice`, `idle`, or why it was refused. */
	request(outcome: GatewayOutcome): void;
	/** From a complete request head to the spliced link. */
	spliced(seconds: number): void;
}

export function createGatewayMetrics(links: LiveLinks, hubWatch: HubWatch, connections: () => number): GatewayMetrics {
	const registry = new Registry();
	const registers = [registry];
	const requests = new Counter({
		name: "kvasir_gateway_requests_total",
		help: "Requests at the public port by outcome",
		labelNames: ["outcome"],
		registers,
	});
	const seconds = new Histogram({
		name: "kvasir_gateway_splice_seconds",
		help: "From a worker's request to its spliced link",
		buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
		registers,
	});
	new Gauge({
		name: "kvasir_gateway_links",
		help: "Spliced links now",
		registers,
		collect() {
			this.set(links.size);
		},
	});
	new Gauge({
		name: "kvasir_gateway_connections",
		help: "Connections to the public port now, in whatever state",
		registers,
		collect() {
			this.set(connections());
		},
	});
	new Counter({
		name: "kvasir_gateway_bytes_total",
		help: "Bytes spliced, by direction",
		labelNames: ["direction"],
		registers,
		collect() {
			const { fromWorker, toWorker } = links.bytes();
			this.reset();
			this.inc({ direction: "from_worker" }, fromWorker);
			this.inc({ direction: "to_worker" }, toWorker);
		},
	});
	new Gauge({
		name: "kvasir_gateway_hub_reached",
		help: "1: the hub answers; 0: it does not; -1: not known yet",
		registers,
		collect() {
			const { reached } = hubWatch.state;
			this.set(reached === null ? -1 : Number(reached));
		},
	});
	addLimits("kvasir_gateway_limit", registry);
	return { registry, request: (outcome) => requests.inc({ outcome }), spliced: (value) => seconds.observe(value) };
}
