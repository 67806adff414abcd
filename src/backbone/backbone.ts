import type { Clock } from "../io/clock.ts";
import { limits } from "../protocol/limits.ts";
import { closeCodes } from "../protocol/messages.ts";
import type { BackboneEvent, BackboneOptions } from "./backbone-options.ts";
import { type Gaps, gapsIn, waitForCoverage } from "./dispatch/coverage.ts";
import { Dispatcher } from "./dispatch/dispatcher.ts";
import { type ListenAddress, listen } from "./links/listen.ts";
import { type ParkEvent, Parking, parkedDefault } from "./links/park.ts";
import { createReception } from "./links/reception.ts";
import { createRelayServer, type RelayServer } from "./links/relay-server.ts";
import { Roster, type RosterEvent } from "./links/roster.ts";
import type { WorkerLink, WorkerListener } from "./links/worker-link.ts";
import { type AuditEvent, Audits } from "./pay/audits.ts";
import { createHubApi, type HubApi } from "./pay/hub-api.ts";
import { ReceiptBook, type ReceiptEvent } from "./pay/receipt-book.ts";
import type { RemoteExperts } from "./remote.ts";
import { type BackboneSnapshot, countsSnapshot, type WorkerSnapshot, workerSnapshot } from "./snapshot.ts";

export type { BackboneEvent, BackboneOptions } from "./backbone-options.ts";

/** The fixed part of a dispatch's deadline: a round trip around the world and a busy worker. */
const deadlineMsDefault = 3_000;
/** How often a draining link is looked at. */
const drainLookMs = 20;
/** When a worker may dial again after this backbone said goodbye. */
const comeBackMs = 1_000;
/** How long closing waits for the hub to acknowledge the last receipts. */
const flushMs = 5_000;
/** Ended links that snapshots still show. */
const departedMax = 1_000;
/** Sequences remembered as tainted. */
const taintedMax = 65_536;

/** Starts the backbone's side of the swarm. Throws `network` when it cannot listen; a hub that is away is dialled until it is there. */
export async function startBackbone(options: BackboneOptions): Promise<Backbone> {
	const backbone = new Backbone(options);
	await backbone.start();
	return backbone;
}

/** The swarm's side of the backbone: it owns the sockets, and never computes. */
export class Backbone {
	readonly receipts: ReceiptBook;
	readonly #options: BackboneOptions;
	readonly #clock: Clock;
	readonly #closing = new AbortController();
	readonly #listeners = new Set<(event: BackboneEvent) => void>();
	readonly #api: HubApi;
	readonly #roster: Roster;
	readonly #audits: Audits | null;
	readonly #dispatcher: Dispatcher;
	readonly #server: RelayServer;
	readonly #departed: WorkerSnapshot[] = [];
	readonly #tainted = new Set<number>();
	#address: ListenAddress | null = null;
	#parking: Parking | null = null;
	#accepting = true;
	#hubSeen = false;

	constructor(options: BackboneOptions) {
		const { identity, model, clock, random, log } = options;
		this.#options = options;
		this.#clock = clock;
		this.#api = createHubApi({ identity, clock, random });
		this.#roster = new Roster({
			model,
			clock,
			log,
			accepts: options.accepts ?? null,
			emit: (event) => this.#rosterEvent(event),
		});
		this.receipts = new ReceiptBook({
			...{ identity, model, clock, random, log },
			api: this.#api,
			hub: () => this.#parking?.hub ?? options.paidBy ?? null,
			journals: options.journals ?? null,
			audited: async (worker) => this.#audits?.finish(worker),
			emit: (event) => this.#receiptEvent(event),
		});
		this.#audits = this.#openAudits();
		this.#dispatcher = new Dispatcher({
			...{ model, clock },
			roster: this.#roster,
			account: this.receipts,
			deadlineMs: options.deadlineMs ?? deadlineMsDefault,
			wholeRows: options.wholeRows ?? true,
			hedge: options.hedge ?? true,
			accepted: (dispatch) => this.#audits?.accepted(dispatch),
		});
		const receive = createReception({
			...{ identity, model, clock, random, log },
			roster: this.#roster,
			listener: this.#workerListener(),
			vouchesFor: options.vouchesFor ?? [],
			heartbeatMs: options.heartbeatMs ?? limits.heartbeatMs,
			deadMs: options.deadMs ?? limits.deadMs,
			signal: this.#closing.signal,
		});
		this.#server = createRelayServer({
			log,
			receive: (transport, from) => {
				if (this.#accepting) void receive(transport, from);
				else transport.close(closeCodes.goingAway, "closing");
			},
			...(options.serve === undefined ? {} : { serve: options.serve }),
		});
	}

	/** Takes up what a process before this one left, then opens the listener and parks. Called once, by `startBackbone`. */
	async start(): Promise<void> {
		const { hub, park, model, identity, clock, random, log } = this.#options;
		await this.receipts.recover();
		if (this.#options.listen !== undefined) this.#address = await listen(this.#server, this.#options.listen);
		if (hub === undefined) return;
		this.#parking = new Parking({
			...{ hub, identity, clock, random, log },
			model: model.name,
			count: park ?? parkedDefault,
			adopt: (socket) => this.#server.adopt(socket),
			emit: (event) => this.#parkEvent(event),
		});
	}

	get remote(): RemoteExperts {
		return this.#dispatcher;
	}

	/** Where it listens; null where it only parks. */
	get address(): ListenAddress | null {
		return this.#address;
	}

	get workers(): readonly WorkerLink[] {
		return this.#roster.workers;
	}

	/** Calls `listener` for each event until the returned function is called. */
	subscribe(listener: (event: BackboneEvent) => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** Resolves once a connection is parked, or where none is to be. Throws `auth`, `refused`, `network` where the first dials failed; they go on. */
	async untilParked(): Promise<void> {
		await this.#parking?.first;
	}

	/** The experts of these layers that no worker holds now. */
	gaps(layers: readonly number[]): Gaps {
		return gapsIn(this.#roster.coverage(), this.#options.model.experts, layers);
	}

	/** Resolves when every expert of the layers has a holder. Throws `timeout`, or the signal's reason. */
	waitForCoverage(layers: readonly number[], waiting: { timeoutMs: number; signal?: AbortSignal }): Promise<void> {
		const changed = (listener: () => void) => this.subscribe(listener);
		return waitForCoverage({ gaps: () => this.gaps(layers), changed, clock: this.#clock }, waiting);
	}

	snapshot(): BackboneSnapshot {
		const workers = this.#roster.workers.map(workerSnapshot);
		const { model } = this.#options;
		const { counts, pending } = this.receipts;
		return {
			workers,
			served: [...this.#departed, ...workers.filter(({ pairs }) => pairs > 0)],
			...countsSnapshot(this.#dispatcher.counts),
			paidPairs: counts.paidPairs,
			unpaid: Object.fromEntries(counts.unpaid),
			receipts: { issued: counts.receipts, pending },
			audits: { passed: 0, failed: 0, skipped: 0, ...this.#audits?.counts },
			parked: this.#parking?.parked ?? 0,
			covered: {
				experts: this.#roster.coverage().reduce((covered, holders) => covered + Math.min(1, holders), 0),
				of: model.layers * model.experts,
			},
		};
	}

	/** Receipts for everything settled so far, sent; true when the hub has acknowledged all. */
	flushReceipts(): Promise<boolean> {
		return this.receipts.flush();
	}

	/** True for a sequence that used a worker's answers after that worker's last passed audit, and the next one failed. */
	isTainted(sequence: number): boolean {
		return this.#tainted.has(sequence);
	}

	/** Dials the hub again now, whatever the backoff: SIGHUP, wake, a changed route. */
	redial(): void {
		this.#parking?.redial();
	}

	/** No new work; what is in flight finishes (or `graceMs` passes), receipts are exchanged, every worker gets a goodbye. */
	async drain(reason: string, graceMs: number): Promise<void> {
		this.#accepting = false;
		await this.#parking?.close();
		await Promise.all(this.#roster.workers.map((worker) => this.#sendHome(worker, reason, graceMs)));
		await this.#flushBriefly();
	}

	async close(): Promise<void> {
		this.#accepting = false;
		this.#dispatcher.close();
		await this.#parking?.close();
		const workers = this.#roster.workers;
		for (const worker of workers) worker.link.close(closeCodes.goingAway, "closing");
		this.#closing.abort();
		await this.#server.close();
		await Promise.all(workers.map((worker) => worker.link.ended));
		await this.#flushBriefly();
		await this.#api.close();
		await this.receipts.close();
	}

	async #flushBriefly(): Promise<void> {
		const enough = new AbortController();
		const timeout = this.#clock.sleep(flushMs, enough.signal).catch(() => {});
		await Promise.race([this.receipts.flush(), timeout]);
		enough.abort();
	}

	/** Asks a worker to stop, lets it finish, exchanges receipts, says goodbye. */
	#sendHome(worker: WorkerLink, reason: string, graceMs: number): Promise<void> {
		worker.drain(reason, graceMs);
		return this.#farewell(worker, reason, graceMs);
	}

	async #farewell(worker: WorkerLink, reason: string, graceMs: number): Promise<void> {
		const giveUpAtMs = this.#clock.monotonic() + graceMs;
		while (worker.lane.inFlight > 0 && this.#clock.monotonic() < giveUpAtMs) await this.#clock.sleep(drainLookMs);
		await this.#audits?.finish(worker);
		await this.receipts.issue(worker);
		worker.bye(reason, "", comeBackMs);
	}

	#openAudits(): Audits | null {
		const { audits, model, clock, random, log } = this.#options;
		if (audits === undefined) return null;
		return new Audits({
			...{ ...audits, model, clock, random, log },
			hold: (worker, id) => this.receipts.hold(worker, id),
			release: (worker, id) => this.receipts.release(worker, id),
			condemn: (worker) => {
				this.receipts.condemn(worker);
				this.#roster.quarantine(worker);
			},
			emit: (event) => this.#auditEvent(event),
		});
	}

	#workerListener(): WorkerListener {
		return {
			holding: (worker) => this.#emit({ event: "holding", worker }),
			draining: (worker, { graceMs }) => {
				this.#emit({ event: "draining", worker });
				void this.#farewell(worker, "drained", graceMs);
			},
			countersigned: (worker, countersign) => this.receipts.countersigned(worker, countersign),
			sent: (worker, id) => this.receipts.sent(worker, id),
		};
	}

	#rosterEvent(event: RosterEvent): void {
		const { hub, paidBy } = this.#options;
		if (event.event === "joined" && (hub !== undefined || paidBy !== undefined)) this.receipts.open(event.worker);
		if (event.event === "left" && event.worker.answeredPairs > 0) {
			this.#departed.push(workerSnapshot(event.worker));
			if (this.#departed.length > departedMax) this.#departed.shift();
		}
		this.#emit(event);
	}

	#parkEvent(event: ParkEvent): void {
		// Recovered sessions wait for a ledger to be receipted in.
		if (event.event === "parked" && !this.#hubSeen) {
			this.#hubSeen = true;
			void this.receipts.flush();
		}
		this.#emit(event);
	}

	#receiptEvent(event: ReceiptEvent): void {
		if (event.event === "disputed") void this.#sendHome(event.worker, "disputed", limits.deadMs);
		this.#emit(event);
	}

	#auditEvent(event: AuditEvent): void {
		for (const sequence of event.tainted) this.#tainted.add(sequence);
		while (this.#tainted.size > taintedMax) this.#tainted.delete(this.#tainted.values().next().value!);
		this.#emit(event);
	}

	#emit(event: BackboneEvent): void {
		for (const listener of this.#listeners) listener(event);
	}
}
