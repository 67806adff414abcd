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
import { later, type Refusal, type RefusalReason, refusalReasons } from "../refusals.ts";
import type { WorkerTarget } from "../targets.ts";
import type { Admitter } from "./admit.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import type { HubWatch } from "./hub-watch.ts";
import type { LiveLinks } from "./live-links.ts";
import type { TrustedProxies } from "./peer-address.ts";

/** What the public port's requests need. */
export interface GatewaySpliceParts {
	readonly hub: ListenAddress;
	readonly hubSecret: Uint8Array;
	readonly hubWatch: HubWatch;
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

/** An answer of the hub: to an upgrade, or to a plain request. */
export type HubAnswer<Kind extends "switched" | "plain"> = Extract<OutgoingAnswer, { kind: Kind }>;

/**
 * Asks the hub on an admitted worker's behalf, over a connection of its own: an answer that `fits`, which the caller ends, or what the
 * worker is told instead. The hub's own words stay inside: a refusal is one of the gateway's.
 */
export async function askHub<Answer extends OutgoingAnswer>(
	target: WorkerTarget,
	admitted: Admitted,
	{
		from,
		fits,
		parts,
	}: { from: Socket; fits: (answer: OutgoingAnswer) => answer is Answer; parts: GatewaySpliceParts },
): Promise<Answer | Refusal> {
	const { hub, hubSecret, hubWatch, clock, random, closing } = parts;
	const signal = goneSignal(from, closing);
	const socket = await dial(hub, { clock, signal });
	const outgoing = hubRequest(target.target, admitted, { secret: hubSecret, clock, random });
	const answer: OutgoingAnswer =
		socket === null
			? { kind: "failed", reason: "dial" }
			: await send(socket, outgoing, { clock, signal, answerMs: spliceLimits.hubAnswerMs });
	const result = fits(answer) ? answer : hubRefusal(answer, target, parts);
	// A worker that went away while it waited says nothing of the hub.
	if (!signal.aborted) note("kind" in result ? null : result.reason, target, hubWatch);
	return result;
}

/** A slice's 503 may be the backbone's, and one backbone of several that is asked for by name may well be away: neither is the hub's. */
function note(reason: RefusalReason | null, { backbone }: WorkerTarget, hubWatch: HubWatch): void {
	if (reason === "not_ready" || reason === "model_needed" || (reason === "no_backbone" && backbone !== ""))
		hubWatch.seen();
	else hubWatch.answered(reason);
}

function hubRefusal(answer: OutgoingAnswer, { kind }: WorkerTarget, { random, log }: GatewaySpliceParts): Refusal {
	if (answer.kind === "failed") return later(`hub_${answer.reason}`, random);
	answer.socket.destroy();
	if (answer.kind === "switched") return { reason: "hub_accept" };
	const { statusCode } = answer.response;
	if (statusCode === refusalReasons.model_needed) return { reason: "model_needed" };
	if (statusCode === 503) return later(kind === "relay" ? "no_backbone" : "not_ready", random);
	log.error({ status: statusCode }, "the hub refused: is the secret the same, and are the clocks?");
	return { reason: "hub_refused" };
}

/** The worker's own address: the socket's, or the one a trusted proxy names. */
export function peerOf(request: IncomingMessage, { proxies }: { proxies: TrustedProxies }): string {
	const forwarded = request.headers["x-forwarded-for"];
	return proxies.peerOf(request.socket.remoteAddress, typeof forwarded === "string" ? forwarded : undefined);
}
