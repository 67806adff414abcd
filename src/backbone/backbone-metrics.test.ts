import { expect, test } from "vitest";
import { createBackboneMetrics } from "./backbone-metrics.ts";
import type { BackboneSnapshot } from "./snapshot.ts";

const worker = {
	key: "Abc",
	class: "canonical-1",
	device: "cpu",
	sinceMs: 1,
	experts: 8,
	usable: true,
	draining: false,
	pairs: 16,
	inFlight: 0,
	bytesPerSecond: 1e6,
	rttMsP50: 12.5,
	computeMsP50: 1,
	outcomes: { answered: 2 },
};

test("createBackboneMetrics() shows the snapshot of each scrape, and forgets workers that left", async () => {
	let now: BackboneSnapshot = {
		workers: [worker],
		served: [worker],
		requests: 3,
		asked: 24,
		answered: 16,
		retried: 2,
		hedged: 1,
		messages: { sent: 5, wholeRows: 1, q14: 4 },
		tensorBytes: { sent: 4096, received: 8192 },
		unanswered: { late: 8 },
		paidPairs: 16,
		unpaid: { late: 1 },
		receipts: { issued: 1, pending: 1 },
		audits: { passed: 2, failed: 0, skipped: 1 },
		parked: 4,
		covered: { experts: 8, of: 16 },
	};
	// As a backbone: its snapshot is a method.
	class Part {
		readonly now = () => now;
		/** A method, as a backbone's. */
		snapshot() {
			return this.now();
		}
	}
	const metrics = createBackboneMetrics(new Part());
	const first = await metrics.metrics();
	for (const line of [
		'kvasir_backbone_workers{usable="yes"} 1',
		'kvasir_backbone_round_trip_ms{worker="Abc"} 12.5',
		'kvasir_backbone_pairs_total{outcome="asked"} 24',
		'kvasir_backbone_dispatches_total{kind="q14"} 4',
		'kvasir_backbone_tensor_bytes_total{direction="received"} 8192',
		'kvasir_backbone_unanswered_pairs_total{reason="late"} 8',
		'kvasir_backbone_unpaid_total{reason="late"} 1',
		'kvasir_backbone_audits_total{outcome="skipped"} 1',
		"kvasir_backbone_receipts_pending 1",
		"kvasir_backbone_parked 4",
	]) {
		expect(first).toContain(`${line}\n`);
	}
	now = { ...now, workers: [], asked: 32 };
	const second = await metrics.metrics();
	expect(second).not.toContain("Abc");
	expect(second).toContain('kvasir_backbone_pairs_total{outcome="asked"} 32\n');
});
