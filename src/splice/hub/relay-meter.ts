import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import { spliceLimits } from "../limits.ts";

/** What one relay carried: the plausibility bound of its receipts (ledger.md section 2). */
export interface RelayCount {
	/** 32 hex digits, named to the backbone in `X-Kvasir-Relay`. */
	readonly relay: string;
	/** Base58. */
	readonly worker: string;
	/** Base58; empty for a dialled backbone. */
	readonly backbone: string;
	readonly model: string;
	readonly openedAtMs: number;
	readonly bytesFromWorker: number;
	readonly bytesToWorker: number;
	/** These are its last counts. */
	readonly closed: boolean;
}

/** Keeps relay counters durably: adds a relay's row or raises its counts. */
export interface RelayStore {
	saveRelays(counts: readonly RelayCount[]): Promise<void>;
}

/** The two live counters of a relay. */
export type RelayBytes = () => { readonly fromWorker: number; readonly toWorker: number };

/** A relay being counted. */
export interface MeteredRelay {
	count(): RelayCount;
	/** Stores the last counts. */
	end(): void;
}

export interface RelayMeter {
	begin(facts: Pick<RelayCount, "relay" | "worker" | "backbone" | "model">, bytes: RelayBytes): MeteredRelay;
	/** The counts of a live relay; null for any other. */
	find(relay: string): RelayCount | null;
	/** Those that are live. */
	counts(): RelayCount[];
	/** Bytes of all relays, ended ones included. */
	total(): { fromWorker: number; toWorker: number };
	/** Resolves when no relay is live and all counters are stored. */
	settled(): Promise<void>;
	/** Stores no more at intervals. */
	stop(): void;
}

/** Counts by relay id, stored when a relay begins and ends, and all live ones together every 10 s. */
export function createRelayMeter(store: RelayStore, { clock, log }: { clock: Clock; log: Logger }): RelayMeter {
	const live = new Map<string, MeteredRelay>();
	const ended = { fromWorker: 0, toWorker: 0 };
	const waiting: (() => void)[] = [];
	// One write at a time, in order: an older count never lands on a newer one.
	let written: Promise<void> = Promise.resolve();
	let writing = 0;

	function save(counts: readonly RelayCount[]): void {
		writing += 1;
		written = written
			.then(() => store.saveRelays(counts))
			.catch((error: unknown) => {
				// The receipts of these relays may become `unmetered`, which is counted there; the links are not harmed.
				log.error({ error: String(error), relays: counts.length }, "relay counters could not be stored");
			})
			.then(() => {
				writing -= 1;
				wake();
			});
	}

	function wake(): void {
		if (live.size === 0 && writing === 0) for (const resolve of waiting.splice(0)) resolve();
	}

	const counts = () => [...live.values()].map((relay) => relay.count());

	let cancel = clock.after(spliceLimits.relayStoreMs, storeAll);
	function storeAll(): void {
		// A store that is still busy with the last round is not given another.
		if (live.size > 0 && writing === 0) save(counts());
		cancel = clock.after(spliceLimits.relayStoreMs, storeAll);
	}

	return {
		begin(facts, bytes) {
			const openedAtMs = clock.now();
			const relay: MeteredRelay = {
				count() {
					const { fromWorker, toWorker } = bytes();
					return { ...facts, openedAtMs, bytesFromWorker: fromWorker, bytesToWorker: toWorker, closed: false };
				},
				end() {
					const count = relay.count();
					if (!live.delete(facts.relay)) return;
					ended.fromWorker += count.bytesFromWorker;
					ended.toWorker += count.bytesToWorker;
					save([{ ...count, closed: true }]);
				},
			};
			live.set(facts.relay, relay);
			// A row from the start: receipts add up against it.
			save([relay.count()]);
			return relay;
		},
		find: (relay) => live.get(relay)?.count() ?? null,
		counts,
		total() {
			const sum = { ...ended };
			for (const { bytesFromWorker, bytesToWorker } of counts()) {
				sum.fromWorker += bytesFromWorker;
				sum.toWorker += bytesToWorker;
			}
			return sum;
		},
		settled: () =>
			live.size === 0 && writing === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
		stop: () => cancel(),
	};
}
