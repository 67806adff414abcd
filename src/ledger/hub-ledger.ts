import type { Clock } from "../io/clock.ts";
import type { Location, OpenOptions } from "./database.ts";
import type { HubStore } from "./hub-store.ts";
import { StoreThread } from "./store-calls.ts";

/** The hub's ledger in a thread of its own, with a long poll. */
export interface HubLedger extends HubStore {
	/** Resolves when the ledger has an entry after `after`, after `waitMs`, or when the signal aborts, whatever comes first. */
	waitForEntries(after: number, waitMs: number, signal?: AbortSignal): Promise<void>;
}

/** Opens (or creates) the hub's ledger: a file, `:memory:` or `postgres://...`. Throws `ledger`, `version` or `file_missing`. */
export async function openHubLedger(
	location: Location,
	{ clock, ...options }: OpenOptions & { readonly clock: Clock },
): Promise<HubLedger> {
	let head = 0;
	const waiting = new Set<() => void>();
	const onHead = (newest: number) => {
		head = Math.max(head, newest);
		for (const wake of waiting) wake();
	};
	const { thread, opened } = await StoreThread.open({ kind: "hub", location, options }, onHead);
	return {
		ledgerId: opened,
		acceptReceipt: (submission, origin) => thread.call("acceptReceipt", submission, origin),
		entriesAfter: (after, hash, limit) => thread.call("entriesAfter", after, hash, limit),
		recordRelays: (counts) => thread.call("recordRelays", counts),
		totals: (after, upTo) => thread.call("totals", after, upTo),
		conflicts: () => thread.call("conflicts"),
		checkChain: () => thread.call("checkChain"),
		waitForEntries(after, waitMs, signal) {
			if (head > after || signal?.aborted) return Promise.resolve();
			return new Promise((resolve) => {
				const done = () => {
					if (head <= after && !signal?.aborted && !timedOut) return;
					waiting.delete(done);
					cancel();
					signal?.removeEventListener("abort", done);
					resolve();
				};
				let timedOut = false;
				const cancel = clock.after(waitMs, () => {
					timedOut = true;
					done();
				});
				waiting.add(done);
				signal?.addEventListener("abort", done);
			});
		},
		async close() {
			await thread.close();
			onHead(Number.MAX_SAFE_INTEGER);
		},
	};
}
