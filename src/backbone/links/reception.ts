import { setMaxListeners } from "node:events";
import { KvasirError } from "../../errors.ts";
import { addressOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { acceptHandshake } from "../../protocol/handshake.ts";
import { limits } from "../../protocol/limits.ts";
import type { Transport } from "../../protocol/link.ts";
import { closeCodes, type Hello, type ModelFacts, type Offer, type WelcomeBody } from "../../protocol/messages.ts";
import type { Roster } from "./roster.ts";
import { WorkerLink, type WorkerListener } from "./worker-link.ts";

/** The most the backbone uses of what a worker offers. */
const offerMax = { dispatchesMax: 64, inFlightBytesMax: 64 * 1024 * 1024 } as const;

/** Where a connection came from. */
export interface Arrived {
	/** The hub's id of the spliced connection; empty for one that no hub carried. */
	readonly relay: string;
	/** Base58 key that the gateway admitted; null where no gateway was passed. */
	readonly admitted: string | null;
}

export interface ReceptionParts {
	readonly identity: KeyPair;
	readonly model: ModelFacts;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly roster: Roster;
	readonly listener: WorkerListener;
	/** Base58 keys of other backbones this one vouches for. */
	readonly vouchesFor: readonly Uint8Array[];
	readonly heartbeatMs: number;
	readonly deadMs: number;
	readonly signal: AbortSignal;
}

/** Takes new connections through the handshake to the roster. Resolves with the worker, or null when it was not let in; never rejects. */
export function createReception(
	parts: ReceptionParts,
): (transport: Transport, from: Arrived) => Promise<WorkerLink | null> {
	const { identity, model, clock, random, log, roster, listener, signal } = parts;
	// One listener for each handshake under way: as many as there are newcomers.
	setMaxListeners(0, signal);

	function welcome({ offer }: Hello): WelcomeBody {
		return {
			session: random.bytes(16),
			heartbeatMs: parts.heartbeatMs,
			deadMs: parts.deadMs,
			limits: granted(offer),
			model,
			backbones: parts.vouchesFor,
		};
	}

	return async (transport, { relay, admitted }) => {
		try {
			const { link, hello } = await acceptHandshake(transport, { identity, clock, random, signal, welcome });
			const worker = new WorkerLink({
				link,
				hello,
				limits: granted(hello.offer),
				model,
				relay,
				bytesRead: () => transport.bytesRead,
				clock,
				listener,
			});
			if (admitted !== null && admitted !== addressOf(hello.key)) {
				log.warn({ admitted, worker: worker.address }, "another key than the gateway admitted");
				link.close(closeCodes.auth, "another key than admitted");
				return null;
			}
			return (await roster.admit(worker)) ? worker : null;
		} catch (error) {
			if (!(error instanceof KvasirError) && !signal.aborted) throw error;
			log.debug({ error: (error as Error).message, admitted }, "handshake failed");
			return null;
		}
	};
}

function granted(offer: Offer): Offer {
	return {
		memoryBytes: offer.memoryBytes,
		rowsMax: Math.min(offer.rowsMax, limits.rows),
		dispatchesMax: Math.min(offer.dispatchesMax, offerMax.dispatchesMax),
		inFlightBytesMax: Math.min(offer.inFlightBytesMax, offerMax.inFlightBytesMax),
	};
}
