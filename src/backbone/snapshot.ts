import type { DispatchCounts } from "./dispatch/dispatcher.ts";
import type { WorkerLink } from "./links/worker-link.ts";

/** One worker as status screens and reports show it. */
export interface WorkerSnapshot {
	readonly key: string;
	readonly class: string;
	readonly device: string;
	readonly sinceMs: number;
	readonly experts: number;
	readonly usable: boolean;
	readonly draining: boolean;
	readonly pairs: number;
	readonly inFlight: number;
	readonly bytesPerSecond: number;
	/** Medians of the last answers; null before the first. */
	readonly rttMsP50: number | null;
	readonly computeMsP50: number | null;
	/** Answers, refusals and failures by name. */
	readonly outcomes: Readonly<Record<string, number>>;
}

/** The backbone at one moment. */
export interface BackboneSnapshot {
	readonly workers: readonly WorkerSnapshot[];
	/** Links over which something was answered, those that ended first (the last thousand of them). */
	readonly served: readonly WorkerSnapshot[];
	readonly requests: number;
	readonly asked: number;
	readonly answered: number;
	/** Pairs asked again of another holder; hedged: beside a slow one. */
	readonly retried: number;
	readonly hedged: number;
	readonly messages: Readonly<DispatchCounts["messages"]>;
	readonly tensorBytes: Readonly<DispatchCounts["tensorBytes"]>;
	/** Pairs left to the local copy, by reason. */
	readonly unanswered: Readonly<Record<string, number>>;
	readonly paidPairs: number;
	/** Dispatches not paid, by reason. */
	readonly unpaid: Readonly<Record<string, number>>;
	readonly receipts: { readonly issued: number; readonly pending: number };
	/** Answers recomputed here; skipped: drawn, and over the time that audits may take. */
	readonly audits: { readonly passed: number; readonly failed: number; readonly skipped: number };
	/** Sockets waiting at the hub. */
	readonly parked: number;
	/** Experts with at least one holder that may be asked, of all. */
	readonly covered: { readonly experts: number; readonly of: number };
}

export function workerSnapshot(worker: WorkerLink): WorkerSnapshot {
	return {
		key: worker.address,
		class: worker.hello.engine.class,
		device: worker.hello.engine.device,
		sinceMs: worker.sinceMs,
		experts: worker.holdings.count,
		usable: worker.usable,
		draining: worker.draining,
		pairs: worker.answeredPairs,
		inFlight: worker.lane.inFlight,
		bytesPerSecond: Math.round(worker.bytesPerMs * 1000),
		rttMsP50: worker.roundTripsMs.quantile(0.5),
		computeMsP50: worker.computesMs.quantile(0.5),
		outcomes: Object.fromEntries(worker.outcomes),
	};
}

export function countsSnapshot({ unanswered, messages, tensorBytes, ...counts }: DispatchCounts) {
	return {
		...counts,
		messages: { ...messages },
		tensorBytes: { ...tensorBytes },
		unanswered: Object.fromEntries(unanswered),
	};
}
