import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { ModelFacts } from "../protocol/messages.ts";
import type { ListenAddress } from "./links/listen.ts";
import type { ParkEvent } from "./links/park.ts";
import type { HubAddress } from "./links/park-dial.ts";
import type { RosterEvent } from "./links/roster.ts";
import type { WorkerLink } from "./links/worker-link.ts";
import type { AuditEvent, AuditOptions } from "./pay/audits.ts";
import type { HubFacts } from "./pay/hub-api.ts";
import type { ReceiptEvent } from "./pay/receipt-book.ts";

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
	/** The fixed part of a dispatch's deadline; default 3 s. */
	readonly deadlineMs?: number;
	/** May workers sum whole rows (mode 1)? Default true; a comparison of single partials needs false. */
	readonly wholeRows?: boolean;
	/** May a second worker be asked while the first is slow (2% of pairs)? Default true; exact counts need false. */
	readonly hedge?: boolean;
	/** Engine classes that may join (engine-rules.ts); absent: any. A canonical-1 worker must state this program's digest in any case. */
	readonly accepts?: readonly string[];
	/** Recompute a share of the answers; absent: none is, and every receipt reaches to the last settled dispatch. */
	readonly audits?: AuditOptions;
	/** Keys of other backbones that workers should link to as well. */
	readonly vouchesFor?: readonly Uint8Array[];
	readonly heartbeatMs?: number;
	readonly deadMs?: number;
	/** Answers plain HTTP requests of workers (manifest, slices). */
	readonly serve?: (request: IncomingMessage, response: ServerResponse) => void;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
}

/** Everything that happens to a backbone. */
export type BackboneEvent =
	| RosterEvent
	| ParkEvent
	| ReceiptEvent
	| AuditEvent
	| { readonly event: "holding" | "draining"; readonly worker: WorkerLink };
