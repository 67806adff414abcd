import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { failpoint } from "../io/failpoint.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { Diverged, EntryPage } from "./entry.ts";
import type { GatewayStore } from "./gateway-store.ts";

/**
 * Asks the hub once: `GET /ledger/entries?after=N&hash=HEX&limit=N&wait=MS`.
 * 200: `pageJson` (read it with `parsePage`). 409: `{"diverged":{"after","head","hash"}}`, returned as it is.
 * Anything else, and no connection, throws; the poller tries again.
 */
export type FetchEntries = (
	query: { readonly after: number; readonly hash: string; readonly limit: number; readonly waitMs: number },
	signal: AbortSignal,
) => Promise<EntryPage | Diverged>;

/** How the poller stands, for status and metrics. */
export interface PollerState {
	readonly state: "crediting" | "unreachable" | "diverged";
	readonly credited: number;
	/** The last error in words; null when the last poll was good. */
	readonly error: string | null;
}

export interface PollerOptions {
	readonly fetchEntries: FetchEntries;
	readonly store: Pick<GatewayStore, "cursor" | "credit">;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly signal: AbortSignal;
	/** Called after every poll. */
	readonly onState?: (state: PollerState) => void;
}

const poll = { limit: 500, waitMs: 25_000, retryMinMs: 500, retryMaxMs: 30_000, divergedMs: 60_000 };

/**
 * Credits the hub's entries until the signal aborts; never rejects. The cursor lives in the store and moves with the credits,
 * so that a poll cut off anywhere is simply repeated. After `diverged` nothing is credited; the hub is asked again every minute,
 * for when an operator has restored it.
 */
export async function pollCredits(options: PollerOptions): Promise<void> {
	const { store, clock, random, log, signal } = options;
	let failures = 0;
	let credited = 0;
	const pause = (delayMs: number) => clock.sleep(delayMs, signal).catch(() => {});
	while (!signal.aborted) {
		try {
			const cursor = await store.cursor();
			const { limit, waitMs } = poll;
			const page = await options.fetchEntries({ after: cursor.after, hash: cursor.hash, limit, waitMs }, signal);
			if ("diverged" in page) throw divergedAt(page);
			failpoint("gateway.credit.before");
			await store.credit(page);
			failpoint("gateway.credit.after");
			credited += page.entries.length;
			failures = 0;
			options.onState?.({ state: "crediting", credited, error: null });
		} catch (error) {
			if (signal.aborted) return;
			const message = error instanceof Error ? error.message : String(error);
			const diverged = error instanceof KvasirError && error.code === "diverged";
			if (diverged) log.error({ error: message }, "nothing is credited until an operator acts");
			else log.warn({ error: message, failures }, "cannot poll the hub's ledger");
			options.onState?.({ state: diverged ? "diverged" : "unreachable", credited, error: message });
			const ceilingMs = Math.min(poll.retryMaxMs, poll.retryMinMs * 2 ** failures++);
			await pause(diverged ? poll.divergedMs : ceilingMs * (0.5 + random.uniform() / 2));
		}
	}
}

function divergedAt({ diverged }: Diverged): KvasirError {
	const state = diverged.hash === null ? "no such entry there" : "another entry there";
	return new KvasirError(
		"diverged",
		`Cannot credit after entry ${diverged.after}: the hub has ${state} (head ${diverged.head})`,
	);
}
