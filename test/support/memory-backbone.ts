import { type DispatchAccount, Dispatcher, type DispatcherParts } from "../../src/backbone/dispatch/dispatcher.ts";
import { createReception } from "../../src/backbone/links/reception.ts";
import { Roster, type RosterEvent } from "../../src/backbone/links/roster.ts";
import type { WorkerLink, WorkerListener } from "../../src/backbone/links/worker-link.ts";
import type { RemoteRequest } from "../../src/backbone/remote.ts";
import { silentLog } from "../../src/io/log.ts";
import { type MemoryTransportOptions, memoryTransportPair } from "../../src/protocol/memory-transport.ts";
import type { ModelFacts } from "../../src/protocol/messages.ts";
import { type FakeClock, fakeClock, settle } from "./fake-clock.ts";
import {
	expertVector,
	type Script,
	type ScriptedWorker,
	scriptedIdentity,
	startScriptedWorker,
} from "./scripted-worker.ts";
import { seededRandom } from "./seeded-random.ts";

export const testModel: ModelFacts = {
	modelId: new Uint8Array(32),
	name: "test",
	layers: 3,
	experts: 8,
	topK: 2,
	hidden: 8,
	expertWidth: 16,
};

/** Every expert of the test model. */
export const everything = [0, 1, 2].map((layer) => ({ layer, first: 0, count: 8 }));

/** Roster, reception and dispatcher over memory links, without sockets and with a clock that tests move. */
export interface MemoryBackbone {
	readonly clock: FakeClock;
	readonly roster: Roster;
	readonly dispatcher: Dispatcher;
	readonly events: RosterEvent[];
	/** What was written down, in order: `paid key id pairs`, `unpaid key id reason`, `void key id`. */
	readonly account: string[];
	/** Resolves when the worker finished its handshake and the backbone decided about it. */
	join(script?: Script, transport?: MemoryTransportOptions): Promise<ScriptedWorker>;
	close(): void;
}

export function memoryBackbone(
	options: Partial<DispatcherParts> & {
		listener?: Partial<WorkerListener>;
		joined?: (worker: WorkerLink) => void;
	} = {},
): MemoryBackbone {
	const clock = fakeClock();
	const closing = new AbortController();
	const events: RosterEvent[] = [];
	const account: string[] = [];
	const write =
		(what: string) =>
		(worker: WorkerLink, id: number, detail: unknown = "") =>
			account.push(`${what} ${worker.address.slice(0, 4)} ${id} ${detail}`.trim());
	const booked: DispatchAccount = {
		paid: (worker, id, pairs) => write("paid")(worker, id, pairs) > 0,
		unpaid: write("unpaid"),
		void: write("void"),
	};
	const emit = (event: RosterEvent) => {
		events.push(event);
		if (event.event === "joined") options.joined?.(event.worker);
	};
	const parts = { model: testModel, clock, log: silentLog };
	const roster = new Roster({ ...parts, emit });
	const receive = createReception({
		...parts,
		identity: scriptedIdentity(200),
		random: seededRandom(7),
		roster,
		listener: { holding() {}, draining() {}, countersigned() {}, sent() {}, ...options.listener },
		vouchesFor: [],
		heartbeatMs: 15_000,
		deadMs: 45_000,
		signal: closing.signal,
	});
	const dispatcher = new Dispatcher({
		...parts,
		roster,
		account: booked,
		deadlineMs: 1000,
		wholeRows: true,
		...options,
	});
	return {
		clock,
		roster,
		dispatcher,
		events,
		account,
		async join(script = {}, transport = {}) {
			const [near, far] = memoryTransportPair(transport);
			const received = receive(near, { relay: "", admitted: null });
			const worker = await startScriptedWorker(far, {
				clock,
				holds: everything,
				random: seededRandom(script.seed ?? 1),
				...script,
			});
			received.catch(() => {});
			await settle();
			return worker;
		},
		close() {
			dispatcher.close();
			closing.abort();
			for (const worker of roster.workers) worker.link.close(1001, "test ends");
		},
	};
}

/** A request of `rows` rows of small integers for the given experts a row. */
export function requestOf(experts: readonly (readonly number[])[], facts: Partial<RemoteRequest> = {}): RemoteRequest {
	const { hidden } = testModel;
	return {
		layer: 1,
		rowCount: experts.length,
		rows: Float32Array.from({ length: experts.length * hidden }, (_, index) => (index % 13) - 6),
		rowIndex: Uint16Array.from(experts.flatMap((row, index) => row.map(() => index))),
		expert: Uint16Array.from(experts.flat()),
		weight: Float32Array.from(experts.flat(), (_, index) => 0.5 + (index % 2) * 0.25),
		phase: "decode",
		sequence: experts.map(() => 1),
		...facts,
	};
}

/** What every pair should come back as; in order. */
export function expectedVectors(request: RemoteRequest): number[][] {
	const { hidden } = testModel;
	return Array.from(request.expert, (expert, pair) => {
		const row = request.rowIndex[pair]!;
		return [...expertVector(request.layer, expert, request.rows.subarray(row * hidden, (row + 1) * hidden))];
	});
}
