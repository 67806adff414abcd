import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import { spliceLimits } from "../limits.ts";
import type { ListenAddress } from "../listener.ts";
import { dial } from "../outgoing.ts";
import type { RefusalReason } from "../refusals.ts";

/** What the gateway knows of its hub. */
export interface HubState {
	/** Null: not known yet. False: it does not answer; true with a `reason`: it answers, and refuses. */
	readonly reached: boolean | null;
	/** Why the last worker could not be tied, in the words of the fixed table; null: nothing is in the way. */
	readonly reason: RefusalReason | null;
	/** Unix milliseconds of the last change. */
	readonly sinceMs: number;
}

/** Tells "the gateway does not reach its hub" from "the hub has nobody for this worker", whether or not a worker comes. */
export interface HubWatch {
	readonly state: HubState;
	/** What became of a worker's request: null for an answer that was used. */
	answered(reason: RefusalReason | null): void;
	/** The hub answered, and what it said concerns that request alone. */
	seen(): void;
	/** Looks whether the hub's port is open, at once and now and then; the returned function ends that. */
	look(): () => void;
}

/** Where the hub itself does not answer; anything else it said itself. */
const unreached: ReadonlySet<RefusalReason> = new Set(["hub_dial", "hub_closed", "hub_timeout", "hub_malformed"]);
/** Of these, what ends by itself once the hub is back: an open port speaks against them. */
const passing: ReadonlySet<RefusalReason | null> = new Set(["hub_dial", "hub_closed", "hub_timeout"]);

/** Keeps what workers' requests and looks find, and logs each change. */
export function createHubWatch(hub: ListenAddress, { clock, log }: { clock: Clock; log: Logger }): HubWatch {
	const facts = { hub: `${hub.host}:${hub.port}` };
	let state: HubState = { reached: null, reason: null, sinceMs: clock.now() };

	function change(reason: RefusalReason | null): void {
		const reached = reason === null || !unreached.has(reason);
		if (state.reached === reached && state.reason === reason) return;
		const before = state.reached;
		state = { reached, reason, sinceMs: clock.now() };
		if (!reached) log.warn({ ...facts, reason }, "the hub is not reached: no worker can be tied");
		else if (reason !== null) log.warn({ ...facts, reason }, "the hub is reached, but no worker can be tied");
		else if (before !== null) log.info(facts, "the hub is reached, and workers can be tied");
	}

	return {
		get state() {
			return state;
		},
		answered: change,
		seen: () => change(state.reached ? state.reason : null),
		look() {
			const stopped = new AbortController();
			let cancel = () => {};
			async function lookOnce(): Promise<void> {
				const socket = await dial(hub, { clock, signal: stopped.signal });
				socket?.destroy();
				if (stopped.signal.aborted) return;
				if (socket === null) change("hub_dial");
				// That the port is open says nothing against what the hub answered.
				else if (state.reached === null || passing.has(state.reason)) change(null);
				cancel = clock.after(spliceLimits.hubLookMs, () => void lookOnce());
			}
			void lookOnce();
			return () => {
				stopped.abort();
				cancel();
			};
		},
	};
}
