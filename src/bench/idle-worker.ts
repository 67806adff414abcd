import { Agent } from "node:http";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { closeCodes } from "../protocol/messages.ts";
import { bindPayout } from "../protocol/payout.ts";
import { DialLoop } from "../worker/dial.ts";
import { webSocketDialer } from "../worker/dialer.ts";
import type { WorkerHome } from "../worker/home.ts";
import type { Serving } from "../worker/serve.ts";
import type { WorkerEvent } from "../worker/worker-event.ts";

export interface IdleWorkerParts {
	/** `ws://host:port` of a gateway. */
	readonly url: string;
	readonly identity: KeyPair;
	/** An address of this machine to dial from, since a gateway counts by address. */
	readonly from?: string | undefined;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal: AbortSignal;
	readonly onEvent: (event: WorkerEvent) => void;
}

/**
 * A worker that holds no expert: the real dial loop, handshake, heartbeats and redial policy without an engine or a file, so that
 * thousands fit into one process.
 */
export function startIdleWorker({ url, identity, from, clock, random, signal, onEvent }: IdleWorkerParts): DialLoop {
	const agent = from === undefined ? undefined : new Agent({ localAddress: from });
	return new DialLoop({
		dial: webSocketDialer({ url, identity, clock, random, outbound: agent && { agent: () => agent, tls: plainTls } }),
		gateway: new URL(url).host,
		backbone: null,
		vouched: false,
		identity,
		hello: () => ({
			build: "idle",
			engine: { class: "f32", device: "none", memoryBytes: 0, threads: 1, selfCheck: new Uint8Array(0) },
			offer: { memoryBytes: 0, rowsMax: 1, dispatchesMax: 1, inFlightBytesMax: 1 },
			holds: [],
			payout: bindPayout(identity, identity.publicKey),
		}),
		home: homeInMemory(random),
		serve: (link): Serving => ({
			holdingChanged() {},
			async drain(reason) {
				link.close(closeCodes.goingAway, reason);
			},
			ended: link.ended.then(({ code, reason }) => ({ kind: "closed", code, reason })),
		}),
		clock,
		random,
		signal,
		onEvent,
	});
}

/** Only `ws://` is dialled. */
const plainTls = { checkServerIdentity: () => undefined };

function homeInMemory(random: Random): WorkerHome {
	let epoch = 0;
	let backbone: Uint8Array | null = null;
	return {
		instance: random.bytes(16),
		async nextEpoch(atLeast = 0) {
			epoch = Math.max(epoch + 1, atLeast);
			return epoch;
		},
		backboneOf: async () => backbone,
		async rememberBackbone(_, key) {
			backbone = key;
		},
	};
}
