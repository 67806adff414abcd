import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { ExpertRange, ModelFacts } from "../../protocol/messages.ts";
import type { Backbone } from "../backbone.ts";
import type { BackboneEvent } from "../backbone-options.ts";
import type { WorkerLink } from "../links/worker-link.ts";
import type { RemoteRequest } from "../remote.ts";
import { type AssignableWorker, planAssignments } from "./assign.ts";
import type { SliceService } from "./slices.ts";

/** Workers that come together are planned for together. */
const settleMs = 150;
/** One that left keeps its share for this long: most come back, with what they hold. */
const leaseMs = 60_000;
/** How often the plan is looked at again with what the router chose since. */
const reviewMs = 300_000;
/** Bytes an expert takes in a worker, to those of its slice: canonical panels are at most 1.06 of them, and a row of panels more. */
const packedShare = 1.1;
/** What `assign` says while the manifest is still being made. */
const noDigest = new Uint8Array(32);
const leasesMax = 65_536;

export interface AssignerParts {
	readonly backbone: Pick<Backbone, "workers" | "subscribe">;
	readonly model: ModelFacts;
	/** The layers whose experts are asked of workers. */
	readonly layers: readonly number[];
	readonly slices: Pick<SliceService, "digest" | "sliceBytes" | "prepare">;
	readonly clock: Clock;
	readonly log: Logger;
}

interface Lease {
	wanted: ReadonlySet<number>;
	/** Experts that turned out to be all that fits; null: by what it said of its memory. */
	fits: number | null;
	/** How often it had said that it is short, when `fits` was set. */
	shortTimes: number;
	leftAtMs: number | null;
}

/** Tells every worker that holds nothing by its operator's wish what to hold, by `planAssignments`, and plans again as workers come and go. */
export class Assigner {
	readonly #parts: AssignerParts;
	readonly #asked: readonly number[];
	readonly #heat: Float64Array;
	readonly #leases = new Map<string, Lease>();
	readonly #unsubscribe: () => void;
	#cancelPlan: (() => void) | null = null;
	#cancelReview: () => void;

	constructor(parts: AssignerParts) {
		const { model, layers, backbone, clock } = parts;
		this.#parts = parts;
		this.#asked = layers.flatMap((layer) =>
			Array.from({ length: model.experts }, (_, expert) => layer * model.experts + expert),
		);
		this.#heat = new Float64Array(model.layers * model.experts);
		this.#unsubscribe = backbone.subscribe((event) => this.#happened(event));
		this.#cancelReview = clock.after(reviewMs, () => this.#review());
	}

	/** Counts what the router chose. */
	routed({ layer, expert }: Pick<RemoteRequest, "layer" | "expert">): void {
		const start = layer * this.#parts.model.experts;
		for (const id of expert) this.#heat[start + id]!++;
	}

	close(): void {
		this.#unsubscribe();
		this.#cancelPlan?.();
		this.#cancelReview();
	}

	#happened(event: BackboneEvent): void {
		if (event.event === "holding" && isFree(event.worker)) this.#met(event.worker);
		if (event.event !== "left") return;
		const { clock, backbone } = this.#parts;
		const { address } = event.worker;
		const lease = this.#leases.get(address);
		// One that a newer link of its key took over has not left.
		if (lease === undefined || backbone.workers.some((worker) => worker.address === address)) return;
		lease.leftAtMs = clock.monotonic();
		clock.after(leaseMs, () => this.#planSoon());
	}

	/** The first thing a worker says is what it holds; later it says so whenever that changes. */
	#met(worker: WorkerLink): void {
		const lease = this.#leases.get(worker.address);
		const short = worker.outcomes.get("refuse_overloaded") ?? 0;
		if (lease === undefined) {
			this.#leases.set(worker.address, { wanted: new Set(), fits: null, shortTimes: 0, leftAtMs: null });
			if (this.#leases.size > leasesMax) this.#leases.delete(this.#leases.keys().next().value!);
			this.#planSoon();
		} else if (lease.leftAtMs !== null) {
			lease.leftAtMs = null;
			lease.shortTimes = 0;
			this.#tell(worker, lease.wanted);
			this.#planSoon();
		} else if (short > lease.shortTimes) this.#planSoon();
	}

	#review(): void {
		this.#cancelReview = this.#parts.clock.after(reviewMs, () => this.#review());
		this.#planSoon();
	}

	#planSoon(): void {
		this.#cancelPlan ??= this.#parts.clock.after(settleMs, () => {
			this.#cancelPlan = null;
			this.#plan();
		});
	}

	#plan(): void {
		const { backbone, model, clock, log } = this.#parts;
		const now = clock.monotonic();
		for (const [address, { leftAtMs }] of this.#leases) {
			if (leftAtMs !== null && now - leftAtMs >= leaseMs) this.#leases.delete(address);
		}
		const byAddress = new Map(backbone.workers.map((worker) => [worker.address, worker]));
		const workers = [...this.#leases].map(([address, lease]) =>
			this.#assignable(address, lease, byAddress.get(address)),
		);
		const held = backbone.workers.filter((worker) => !isFree(worker)).map(({ holdings }) => holdings);
		const assigned = planAssignments({
			asked: this.#asked,
			experts: model.experts,
			workers,
			fixed: (expert) =>
				held.filter((holdings) => holdings.has(Math.floor(expert / model.experts), expert % model.experts)).length,
			heat: (expert) => this.#heat[expert]!,
		});
		for (const [address, wanted] of assigned) {
			const lease = this.#leases.get(address)!;
			if (sameSet(lease.wanted, wanted)) continue;
			lease.wanted = wanted;
			const worker = byAddress.get(address);
			if (worker !== undefined) this.#tell(worker, wanted);
			log.info({ worker: address, experts: wanted.size }, "assigned");
		}
	}

	#assignable(name: string, lease: Lease, worker: WorkerLink | undefined): AssignableWorker {
		const { model } = this.#parts;
		const ready = new Set<number>();
		worker?.holdings.each((layer, expert) => ready.add(layer * model.experts + expert));
		const short = worker?.outcomes.get("refuse_overloaded") ?? 0;
		if (worker !== undefined && short > lease.shortTimes) {
			lease.shortTimes = short;
			lease.fits = ready.size;
		}
		const capacity = lease.fits ?? (worker === undefined ? lease.wanted.size : this.#fitting(worker));
		return { name, capacity, ready, wanted: lease.wanted.size === 0 ? null : lease.wanted };
	}

	#fitting({ hello }: WorkerLink): number {
		const { model, slices } = this.#parts;
		const canonical = hello.engine.class === "canonical-1";
		const bytesEach = canonical ? slices.sliceBytes * packedShare : 3 * 4 * model.hidden * model.expertWidth;
		return Math.floor(hello.offer.memoryBytes / bytesEach);
	}

	#tell(worker: WorkerLink, wanted: ReadonlySet<number>): void {
		const { slices, model } = this.#parts;
		slices.prepare();
		worker.assign({
			wanted: rangesOf(wanted, model.experts),
			manifestDigest: slices.digest ?? noDigest,
			slicePath: "/v1/slices/",
		});
	}
}

/** Does it hold what it is told to? Who holds by its operator's wish says so in hello. */
function isFree({ hello }: WorkerLink): boolean {
	return hello.holds.length === 0;
}

function sameSet(a: ReadonlySet<number>, b: ReadonlySet<number>): boolean {
	return a.size === b.size && [...a].every((item) => b.has(item));
}

/** Runs of experts, layer by layer. */
function rangesOf(wanted: ReadonlySet<number>, experts: number): ExpertRange[] {
	const ranges: { layer: number; first: number; count: number }[] = [];
	for (const number of [...wanted].sort((a, b) => a - b)) {
		const [layer, expert] = [Math.floor(number / experts), number % experts];
		const last = ranges.at(-1);
		if (last !== undefined && last.layer === layer && last.first + last.count === expert) last.count++;
		else ranges.push({ layer, first: expert, count: 1 });
	}
	return ranges;
}
