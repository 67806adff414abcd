import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { dialHandshake } from "../protocol/handshake.ts";
import { limits } from "../protocol/limits.ts";
import { closeCodes } from "../protocol/messages.ts";
import { bindPayout } from "../protocol/payout.ts";
import type { Dialer } from "../worker/dialer.ts";
import type { Check } from "./check.ts";

/** Longer than the pause between heartbeats: what is left open this long is left open for good. */
const idleMsDefault = limits.heartbeatMs + 5_000;

export interface PathParts {
	readonly dial: Dialer;
	readonly identity: KeyPair;
	readonly clock: Clock;
	readonly random: Random;
	/** @default a heartbeat and 5 s */
	readonly idleMs?: number;
}

/** A link like a worker's, that offers nothing: is it still there after a heartbeat, and how long is a round trip? */
export function pathCheck({ dial, identity, clock, random, idleMs = idleMsDefault }: PathParts): Check {
	return {
		name: "path",
		async run(signal) {
			const transport = await dial({ signal });
			const dialledMs = clock.monotonic();
			const { link } = await dialHandshake(transport, {
				identity,
				clock,
				random,
				signal,
				hello: {
					instance: random.bytes(16),
					epoch: 1,
					build: "doctor",
					engine: { class: "none", device: "none", memoryBytes: 0, threads: 1, selfCheck: new Uint8Array(0) },
					offer: { memoryBytes: 0, rowsMax: 1, dispatchesMax: 1, inFlightBytesMax: 1 },
					holds: [],
					payout: bindPayout(identity, identity.publicKey),
				},
			});
			const handshakeMs = clock.monotonic() - dialledMs;
			let said: string | null = null;
			link.onMessage = (message) => {
				if (message.kind === "bye") said = message.code;
			};
			const startMs = clock.monotonic();
			const end = await Promise.race([link.ended, clock.sleep(idleMs, signal).then(() => null)]);
			const seconds = Math.round((clock.monotonic() - startMs) / 1000);
			const tripMs = link.roundTripMs;
			link.close(closeCodes.normal, "doctor");
			if (said !== null) {
				// `engine_class`: this is no worker, and a backbone has no use for it; it has been reached all the same.
				const found =
					said === "key_in_use"
						? "a worker of this home serves over it now"
						: `a backbone answers, handshake in ${handshakeMs.toFixed(0)} ms`;
				return { state: "ok", found };
			}
			if (end !== null) {
				return {
					state: "failed",
					found: `a link with nothing but heartbeats was cut after ${seconds} s (${end.code}${end.reason === "" ? "" : ` ${end.reason}`})`,
					hint: "A proxy or firewall on the way ends idle connections too soon: raise its timeout above 60 s",
				};
			}
			const trip = tripMs === null ? "" : `, round trip ${tripMs.toFixed(0)} ms`;
			return { state: "ok", found: `a link like a worker's held ${seconds} s${trip}` };
		},
	};
}
