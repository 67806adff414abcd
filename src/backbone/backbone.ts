import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import { limits } from "../protocol/limits.ts";
import { closeCodes, type ModelFacts } from "../protocol/messages.ts";
import { type Gaps, gapsIn, waitForCoverage } from "./coverage.ts";
import { type AcceptedDispatch, Dispatcher } from "./dispatcher.ts";
import { createHubApi, type HubFacts } from "./hub-api.ts";
import { type ListenAddress, listen } from "./listen.ts";
import { type ParkEvent, type Parking, parkedDefault, startParking } from "./park.ts";
import type { HubAddress } from "./park-dial.ts";
import { ReceiptBook, type ReceiptEvent } from "./receipt-book.ts";
import { createReception } from "./reception.ts";
import { createRelayServer } from "./relay-server.ts";
import type { RemoteExperts } from "./remote.ts";
import { Roster, type RosterEvent } from "./roster.ts";
import { type BackboneSnapshot, countsSnapshot, type WorkerSnapshot, workerSnapshot } from "./snapshot.ts";
import type { WorkerLink } from "./worker-link.ts";

/** The fixed part of a dispatch's deadline: a round trip around the world and a busy worker. */
const deadlineMsDefault = 3_000;
/** How often a draining link is looked at. */
const drainLookMs = 20;
/** When a worker may dial again after this backbone said goodbye. */
const comeBackMs = 1_000;
/** Ended links that snapshots still show. */
const departedMax = 1000;
/** How long closing waits for the hub to acknowledge the last receipts. */
const flushMs = 5_000;

export type BackboneEvent =
	| RosterEvent
	| ParkEvent
	| ReceiptEvent
	| { readonly event: "listening"; readonly address: ListenAddress }
	| { readonly event: "holding" | "draining"; readonly worker: WorkerLink };

export interface BackboneOptions {
	readonly identity: KeyPair;
	readonly model: ModelFacts;
	/** Park connections at this hub, and post receipts to it. */
	readonly hub?: HubAddress;
	/** Connections kept parked; default 4. */
	readonly park?: number;
	/** Listen for dispatch connections, beside or instead of parking. */
	readonly listen?: ListenAddress;
	/** The hub's API, where the hub dials us (`--dispatch`) and nothing is parked. */
	readonly paidBy?: HubFacts;
	/** Folder of the sessions' journals; without one a killed process loses what was not receipted. */
	readonly journals?: string;
	readonly deadlineMs?: number;
	/** May workers sum whole rows (mode 1)? Default true; an audit of single partials needs false. */
	readonly wholeRows?: boolean;
	/** Keys of other backbones that workers should link to as well. */
	readonly vouchesFor?: readonly Uint8Array[];
	readonly heartbeatMs?: number;
	readonly deadMs?: number;
	/** Answers plain HTTP requests of workers (manifest, slices). */
	readonly serve?: (request: IncomingMessage, response: ServerResponse) => void;
	/** Sees every accepted answer: audits. */
	readonly accepted?: (dispatch: AcceptedDispatch) => void;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
}

/** The swarm's side of the backbone: it owns the sockets, and never computes. */
export interface Backbone {
	readonly remote: RemoteExperts;
	/** Where it listens; null where it only parks. */
	readonly address: ListenAddress | null;
	readonly workers: readonly WorkerLink[];
	/** Calls `listener` for each event until the returned function is called. */
	subscribe(listener: (event: BackboneEvent) => void): () => void;
	/** The experts of these layers that no worker holds now. */
	gaps(layers: readonly number[]): Gaps;
	/** Resolves when every expert of the layers has a holder. Throws `timeout`. */
	waitForCoverage(layers: readonly number[], options: { timeoutMs: number; signal?: AbortSignal }): Promise<void>;
	snapshot(): BackboneSnapshot;
	/** Receipts for everything settled so far, sent; true when the hub has acknowledged all. */
	flushReceipts(): Promise<boolean>;
	readonly receipts: ReceiptBook;
	/** No work for this key for a while: it answered wrongly. */
	quarantine(worker: WorkerLink): void;
	/** Dials the hub again now, whatever the backoff. */
	redial(): void;
	/** No new work; what is in flight finishes (or `graceMs` passes), receipts are exchanged, every worker gets a goodbye. */
	drain(reason: string, graceMs: number): Promise<void>;
	close(): Promise<void>;
}

/** Starts the backbone's side of the swarm. Throws `network` when it cannot listen; a hub that is away is dialled until it is there. */
export async function startBackbone(options: BackboneOptions): Promise<Backbone> {
	const { identity, model, clock, random, log } = options;
	const closing = new AbortController();
	const listeners = new Set<(event: BackboneEvent) => void>();
	const emit = (event: BackboneEvent) => {
		for (const listener of listeners) listener(event);
	};
	let parking: Parking | null = null;
	const departed: WorkerSnapshot[] = [];
	let accepting = true;
	let hubSeen = false;

	const api = createHubApi({ identity, clock, random });
	const hub = () => parking?.hub ?? options.paidBy ?? null;
	const journals = options.journals ?? null;
	const book = new ReceiptBook({ identity, model, clock, random, log, api, hub, journals, emit: receiptEvent });
	const roster = new Roster({ model, clock, log, emit: rosterEvent });
	const paid = options.hub !== undefined || options.paidBy !== undefined;

	function rosterEvent(event: RosterEvent): void {
		if (event.event === "joined" && paid) book.open(event.worker);
		if (event.event === "left" && event.worker.answeredPairs > 0) {
			departed.push(workerSnapshot(event.worker));
			if (departed.length > departedMax) departed.shift();
		}
		emit(event);
	}
	function parkEvent(event: ParkEvent): void {
		// Recovered sessions wait for a ledger to be receipted in.
		if (event.event === "parked" && !hubSeen) void book.flush();
		hubSeen ||= event.event === "parked";
		emit(event);
	}
	function receiptEvent(event: ReceiptEvent): void {
		if (event.event === "disputed") {
			event.worker.drain("disputed", limits.deadMs);
			void farewell(event.worker, "disputed", limits.deadMs);
		}
		emit(event);
	}

	/** Lets a draining worker finish, exchanges receipts, says goodbye. */
	async function farewell(worker: WorkerLink, reason: string, graceMs: number): Promise<void> {
		const giveUpAtMs = clock.monotonic() + graceMs;
		while (worker.lane.inFlight > 0 && clock.monotonic() < giveUpAtMs) await clock.sleep(drainLookMs);
		await book.issue(worker);
		worker.bye(reason, "", comeBackMs);
	}

	const dispatcher = new Dispatcher({
		roster,
		model,
		clock,
		account: book,
		deadlineMs: options.deadlineMs ?? deadlineMsDefault,
		wholeRows: options.wholeRows ?? true,
		...(options.accepted === undefined ? {} : { accepted: options.accepted }),
	});
	const receive = createReception({
		identity,
		model,
		clock,
		random,
		log,
		roster,
		vouchesFor: options.vouchesFor ?? [],
		heartbeatMs: options.heartbeatMs ?? limits.heartbeatMs,
		deadMs: options.deadMs ?? limits.deadMs,
		signal: closing.signal,
		listener: {
			holding: (worker) => emit({ event: "holding", worker }),
			draining(worker, { graceMs }) {
				emit({ event: "draining", worker });
				void farewell(worker, "drained", graceMs);
			},
			countersigned: (worker, countersign) => book.countersigned(worker, countersign),
			sent: (worker, id) => book.sent(worker, id),
		},
	});
	const server = createRelayServer({
		log,
		receive: (transport, from) =>
			accepting ? receive(transport, from) : transport.close(closeCodes.goingAway, "closing"),
		...(options.serve === undefined ? {} : { serve: options.serve }),
	});
	await book.recover();
	const address = options.listen === undefined ? null : await listen(server, options.listen);
	if (address !== null) queueMicrotask(() => emit({ event: "listening", address }));
	if (options.hub !== undefined) {
		parking = startParking({
			hub: options.hub,
			model: model.name,
			count: options.park ?? parkedDefault,
			identity,
			clock,
			random,
			log,
			adopt: (socket) => server.adopt(socket),
			emit: parkEvent,
		});
	}

	const gaps = (layers: readonly number[]) => gapsIn(roster.coverage(), model.experts, layers);
	function subscribe(listener: (event: BackboneEvent) => void): () => void {
		listeners.add(listener);
		return () => listeners.delete(listener);
	}

	return {
		remote: dispatcher,
		address,
		receipts: book,
		get workers() {
			return roster.workers;
		},
		subscribe,
		gaps,
		waitForCoverage: (layers, limitsOfWait) =>
			waitForCoverage({ gaps: () => gaps(layers), changed: (listener) => subscribe(listener), clock }, limitsOfWait),
		snapshot: () => ({
			workers: roster.workers.map(workerSnapshot),
			served: [...departed, ...roster.workers.map(workerSnapshot).filter(({ pairs }) => pairs > 0)],
			...countsSnapshot(dispatcher.counts),
			paidPairs: book.counts.paidPairs,
			unpaid: Object.fromEntries(book.counts.unpaid),
			receipts: { issued: book.counts.receipts, pending: book.pending },
			parked: parking?.parked ?? 0,
			covered: {
				experts: roster.coverage().reduce((covered, holders) => covered + Math.min(1, holders), 0),
				of: model.layers * model.experts,
			},
		}),
		flushReceipts: () => book.flush(),
		quarantine: (worker) => roster.quarantine(worker),
		redial: () => parking?.redial(),
		async drain(reason, graceMs) {
			accepting = false;
			await parking?.close();
			const workers = roster.workers;
			for (const worker of workers) worker.drain(reason, graceMs);
			await Promise.all(workers.map((worker) => farewell(worker, reason, graceMs)));
			await Promise.race([book.flush(), clock.sleep(flushMs)]);
		},
		async close() {
			accepting = false;
			dispatcher.close();
			await parking?.close();
			const ended = roster.workers.map((worker) => worker.link.ended);
			for (const worker of roster.workers) worker.link.close(closeCodes.goingAway, "closing");
			closing.abort();
			await server.close();
			await Promise.all(ended);
			await Promise.race([book.flush(), clock.sleep(flushMs)]);
			await api.close();
			await book.close();
		},
	};
}
