import type { Clock } from "../io/clock.ts";
import type { Logger } from "../io/log.ts";
import { spliceLimits } from "./limits.ts";

/** What one relay carried: the plausibility bound of its receipts (ledger.md section 2). */
export interface RelayCount {
	/** 32 hex digits, named to the backbone in `X-Kvasir-Relay`. */
	readonly relayId: string;
	/** Base58. */
	readonly worker: string;
	/** Base58; empty for a dialled backbone. */
	readonly backbone: string;
	readonly model: string;
	readonly openedAtMs: number;
	readonly closedAtMs: number | null;
	readonly bytesFromWorker: number;
	readonly bytesToWorker: number;
}

/** Keeps relay counters durably: inserts a relay's row or raises its counts. */
export interface RelayStore {
	saveRelay(count: RelayCount): Promise<void>;
}

/** A relay being counted. */
export interface MeteredRelay {
	readonly relayId: string;
	count(): RelayCount;
	/** Stores the last counts; resolves when they are stored or the store refused. */
	end(): Promise<void>;
}

export interface RelayMeter {
	/** Starts counting; `bytes` reads the two live counters. */
	begin(
		facts: { relayId: string; worker: string; backbone: string; model: string },
		bytes: () => { fromWorker: number; toWorker: number },
	): MeteredRelay;
	readonly live: ReadonlySet<MeteredRelay>;
	/** Resolves when no relay is live and all counters are stored. */
	settled(): Promise<void>;
	/** Bytes of all relays that have ended. */
	readonly ended: { fromWorker: number; toWorker: number };
}

/** Counts by relay id, stored when a relay ends and every 10 s while it lives. */
export function createRelayMeter(store: RelayStore, { clock, log }: { clock: Clock; log: Logger }): RelayMeter {
	const live = new Set<MeteredRelay>();
	const ended = { fromWorker: 0, toWorker: 0 };
	const unsettled = new Set<Promise<void>>();

	async function save(count: RelayCount): Promise<void> {
		try {
			await store.saveRelay(count);
		} catch (error) {
			// The receipts of this relay become `unmetered`, which is counted there; the link itself is not harmed.
			log.error({ error, relay: count.relayId }, "relay counters could not be stored");
		}
	}

	return {
		live,
		ended,
		async settled() {
			while (unsettled.size > 0) await Promise.all(unsettled);
		},
		begin(facts, bytes) {
			const openedAtMs = clock.now();
			let closedAtMs: number | null = null;
			let cancel = clock.after(spliceLimits.relayStoreMs, again);
			// One write at a time, in order: an older count never lands on a newer one.
			let saved = Promise.resolve();
			let saving = false;
			function again(): void {
				if (!saving) {
					saving = true;
					saved = save(relay.count()).finally(() => {
						saving = false;
					});
				}
				cancel = clock.after(spliceLimits.relayStoreMs, again);
			}
			let settle: () => void = () => {};
			const settled = new Promise<void>((resolve) => {
				settle = resolve;
			}).then(() => void unsettled.delete(settled));
			unsettled.add(settled);
			const relay: MeteredRelay = {
				relayId: facts.relayId,
				count() {
					const { fromWorker, toWorker } = bytes();
					return { ...facts, openedAtMs, closedAtMs, bytesFromWorker: fromWorker, bytesToWorker: toWorker };
				},
				end() {
					cancel();
					closedAtMs = clock.now();
					const count = relay.count();
					live.delete(relay);
					ended.fromWorker += count.bytesFromWorker;
					ended.toWorker += count.bytesToWorker;
					saved.then(() => save(count)).then(settle);
					return settled;
				},
			};
			live.add(relay);
			return relay;
		},
	};
}
