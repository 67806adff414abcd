import { Counter, Gauge, Registry } from "prom-client";
import { spliceLimits } from "../limits.ts";
import type { RefusalReason } from "../refusals.ts";
import type { ParkedSockets } from "./parked.ts";
import type { RelayMeter } from "./relay-meter.ts";

/** The hub's metrics, in a registry of its own. */
export interface HubMetrics {
	readonly registry: Registry;
	/** A request at the relay port: `relayed`, `parked`, `slice`, or why it was refused. */
	request(outcome: RefusalReason | "relayed" | "parked" | "slice"): void;
}

export function createHubMetrics(meter: RelayMeter, parked: ParkedSockets | null): HubMetrics {
	const registry = new Registry();
	const registers = [registry];
	const requests = new Counter({
		name: "kvasir_hub_requests_total",
		help: "Requests at the relay port by outcome",
		labelNames: ["outcome"],
		registers,
	});
	new Gauge({
		name: "kvasir_hub_relays",
		help: "Workers tied to a backbone now",
		registers,
		collect() {
			this.set(meter.counts().length);
		},
	});
	new Counter({
		name: "kvasir_hub_relay_bytes_total",
		help: "Bytes relayed, by direction",
		labelNames: ["direction"],
		registers,
		collect() {
			const { fromWorker, toWorker } = meter.total();
			this.reset();
			this.inc({ direction: "from_worker" }, fromWorker);
			this.inc({ direction: "to_worker" }, toWorker);
		},
	});
	new Gauge({
		name: "kvasir_hub_parked",
		help: "Connections that backbones keep ready",
		labelNames: ["model", "backbone"],
		registers,
		collect() {
			this.reset();
			for (const { model, backbone, parked: held } of parked?.counts() ?? []) this.set({ model, backbone }, held);
		},
	});
	new Gauge({
		name: "kvasir_hub_waiting",
		help: "Workers that wait for a parked connection",
		registers,
		collect() {
			this.set(parked?.waiting ?? 0);
		},
	});
	addLimits("kvasir_hub_limit", registry);
	return { registry, request: (outcome) => requests.inc({ outcome }) };
}

/** Every bound, visible beside what it bounds. */
export function addLimits(name: string, registry: Registry): void {
	const gauge = new Gauge({ name, help: "Named bounds", labelNames: ["limit"], registers: [registry] });
	for (const [limit, value] of Object.entries(spliceLimits)) gauge.set({ limit }, value);
}
