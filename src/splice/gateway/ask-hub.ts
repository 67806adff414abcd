import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { goneSignal } from "../gone-signal.ts";
import { type Admitted, hubRequest } from "../hub-request.ts";
import { spliceLimits } from "../limits.ts";
import type { ListenAddress } from "../listener.ts";
import { dial, type OutgoingAnswer, request as send } from "../outgoing.ts";
import { later, type Refusal } from "../refusals.ts";
import type { WorkerTarget } from "../targets.ts";
import type { Admitter } from "./admit.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { LiveLinks } from "./live-links.ts";
import type { TrustedProxies } from "./peer-address.ts";

/** What the public port's requests need. */
export interface GatewaySpliceParts {
	readonly hub: ListenAddress;
	readonly hubSecret: Uint8Array;
	readonly admitter: Admitter;
	readonly proxies: TrustedProxies;
	readonly links: LiveLinks;
	readonly metrics: GatewayMetrics;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly closing: AbortSignal;
	readonly headMs: number;
	/** True: no new links; those that live stay. */
	draining(): boolean;
}

/** Asks the hub on an admitted worker's behalf, over a connection of its own. */
export async function askHub(
	target: WorkerTarget,
	admitted: Admitted,
	from: Socket,
	parts: GatewaySpliceParts,
): Promise<OutgoingAnswer> {
	const { hub, hubSecret, clock, random, closing } = parts;
	const signal = goneSignal(from, closing);
	const socket = await dial(hub, { clock, signal });
	if (socket === null) return { kind: "failed", reason: "dial" };
	const outgoing = hubRequest(target.target, admitted, { secret: hubSecret, clock, random });
	return send(socket, outgoing, { clock, signal, answerMs: spliceLimits.hubAnswerMs });
}

/** What a worker is told when the hub did not accept it; the hub's own words stay inside. */
export function hubRefusal(answer: OutgoingAnswer, { random, log }: GatewaySpliceParts): Refusal {
	if (answer.kind === "failed") return later(`hub_${answer.reason}`, random);
	answer.socket.destroy();
	if (answer.kind === "switched") return { reason: "hub_accept" };
	const { statusCode } = answer.response;
	if (statusCode === 503) return later("no_backbone", random);
	log.error({ status: statusCode }, "the hub refused: is the secret the same, and are the clocks?");
	return { reason: "hub_refused" };
}

/** The worker's own address: the socket's, or the one a trusted proxy names. */
export function peerOf(request: IncomingMessage, { proxies }: { proxies: TrustedProxies }): string {
	const forwarded = request.headers["x-forwarded-for"];
	return proxies.peerOf(request.socket.remoteAddress, typeof forwarded === "string" ? forwarded : undefined);
}
