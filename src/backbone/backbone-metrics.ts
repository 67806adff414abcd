import { Counter, Gauge, Registry } from "prom-client";
import type { BackboneSnapshot } from "./snapshot.ts";

/** Sets one value per label, all others forgotten. */
type Samples = readonly (readonly [labels: Record<string, string>, value: number])[];

/** A backbone's metrics, in a registry of its own; each scrape takes one snapshot per metric. */
export function createBackboneMetrics(backbone: { snapshot(): BackboneSnapshot }): Registry {
	const registry = new Registry();
	const registers = [registry];
	const gauge = (name: string, help: string, labelNames: string[], samples: (now: BackboneSnapshot) => Samples) =>
		new Gauge({
			...{ name, help, labelNames, registers },
			collect() {
				this.reset();
				for (const [labels, value] of samples(backbone.snapshot())) this.set(labels, value);
			},
		});
	const counter = (name: string, help: string, labelNames: string[], samples: (now: BackboneSnapshot) => Samples) =>
		new Counter({
			...{ name, help, labelNames, registers },
			collect() {
				this.reset();
				for (const [labels, value] of samples(backbone.snapshot())) this.inc(labels, value);
			},
		});
	const byName = (label: string, values: Readonly<Record<string, number>>): Samples =>
		Object.entries(values).map(([name, value]) => [{ [label]: name }, value]);

	gauge("kvasir_backbone_workers", "Connected workers", ["usable"], ({ workers }) => {
		const usable = workers.filter((worker) => worker.usable).length;
		return [
			[{ usable: "yes" }, usable],
			[{ usable: "no" }, workers.length - usable],
		];
	});
	gauge("kvasir_backbone_experts_covered", "Experts that a usable worker holds", [], ({ covered }) => [
		[{}, covered.experts],
	]);
	gauge("kvasir_backbone_parked", "Connections that wait at the hub", [], ({ parked }) => [[{}, parked]]);
	gauge("kvasir_backbone_receipts_pending", "Receipts that the hub has not acknowledged", [], ({ receipts }) => [
		[{}, receipts.pending],
	]);
	gauge("kvasir_backbone_round_trip_ms", "Median of a worker's last answers", ["worker"], ({ workers }) =>
		workers.flatMap(({ key, rttMsP50 }) => (rttMsP50 === null ? [] : [[{ worker: key }, rttMsP50] as const])),
	);
	counter("kvasir_backbone_pairs_total", "(row, expert) pairs asked of workers, by outcome", ["outcome"], (now) => [
		[{ outcome: "asked" }, now.asked],
		[{ outcome: "answered" }, now.answered],
		[{ outcome: "retried" }, now.retried],
		[{ outcome: "hedged" }, now.hedged],
		[{ outcome: "paid" }, now.paidPairs],
	]);
	counter("kvasir_backbone_dispatches_total", "Dispatches, those that sum rows, and those with q14", ["kind"], (now) =>
		byName("kind", { all: now.messages.sent, whole_rows: now.messages.wholeRows, q14: now.messages.q14 }),
	);
	counter("kvasir_backbone_tensor_bytes_total", "Bytes of rows sent, of vectors received", ["direction"], (now) =>
		byName("direction", now.tensorBytes),
	);
	counter("kvasir_backbone_unanswered_pairs_total", "Pairs left to the local copy", ["reason"], ({ unanswered }) =>
		byName("reason", unanswered),
	);
	counter("kvasir_backbone_unpaid_total", "Dispatches that are not paid", ["reason"], ({ unpaid }) =>
		byName("reason", unpaid),
	);
	counter("kvasir_backbone_audits_total", "Answers drawn to be recomputed here", ["outcome"], ({ audits }) =>
		byName("outcome", audits),
	);
	counter("kvasir_backbone_receipts_total", "Receipts issued", [], ({ receipts }) => [[{}, receipts.issued]]);
	return registry;
}
