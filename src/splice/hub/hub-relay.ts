import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import type { NonceCache } from "../../protocol/nonce-cache.ts";
import { goneSignal } from "../gone-signal.ts";
import { acceptsUpgrade, readUpgrade, switchingHead } from "../http/websocket-upgrade.ts";
import { readRelayedWorker } from "../hub-request.ts";
import { spliceLimits } from "../limits.ts";
import { later, type Refusal } from "../refusals.ts";
import { askBackbone, countingFrom } from "../relay.ts";
import { tie } from "../tie.ts";
import type { HubMetrics } from "./hub-metrics.ts";
import type { BackboneSource } from "./parked.ts";
import type { RelayMeter } from "./relay-meter.ts";

export interface HubRelayParts {
	readonly source: BackboneSource;
	readonly secret: Uint8Array;
	readonly meter: RelayMeter;
	readonly metrics: HubMetrics;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly nonces: NonceCache;
	readonly closing: AbortSignal;
}

/** Ties a worker to a backbone; resolves with why not, or with null once it is tied (or gone). */
export async function relayWorker(
	request: IncomingMessage,
	socket: Socket,
	head: Buffer,
	parts: HubRelayParts,
): Promise<Refusal | null> {
	const { meter, metrics, clock, random, log } = parts;
	const upgrade = readUpgrade(request);
	if ("reason" in upgrade) return upgrade;
	const worker = readRelayedWorker(request, parts, upgrade.key);
	if ("reason" in worker) return worker;
	if (worker.target.kind !== "relay") return { reason: "path" };
	const gone = goneSignal(socket, parts.closing);
	const asked = await askBackbone(worker, parts.source, { clock, random, signal: gone });
	if (!asked.ok) return later(asked.reason, random);
	const { relayId, from, answer } = asked;
	if (answer.kind !== "switched" || !acceptsUpgrade(answer.response, upgrade.key)) {
		from.socket.destroy();
		return later("backbone_refused", random);
	}
	const bytes = countingFrom(answer.socket, answer.rest);
	const relayed = meter.begin(
		{ relay: relayId, worker: worker.key, backbone: from.backbone, model: from.model },
		bytes,
	);
	metrics.request("relayed");
	log.info(
		{ relay: relayId, worker: worker.key, peer: worker.peer, backbone: from.backbone, model: from.model },
		"relay opened",
	);
	socket.write(switchingHead(upgrade.key));
	if (answer.rest.length > 0) socket.write(answer.rest);
	if (head.length > 0) answer.socket.write(head);
	void tie(socket, answer.socket, { clock, idleMs: spliceLimits.idleMs, halfClosedMs: spliceLimits.halfClosedMs }).then(
		(end) => {
			const count = relayed.count();
			relayed.end();
			log.info(
				{ relay: relayId, worker: worker.key, end, up: count.bytesFromWorker, down: count.bytesToWorker },
				"relay closed",
			);
		},
	);
	return null;
}
