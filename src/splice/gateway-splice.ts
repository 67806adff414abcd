import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { AdmittedWorker, Admitter } from "./admit.ts";
import { forwardResponse } from "./forward-response.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import { goneSignal } from "./gone-signal.ts";
import { type Admitted, hubRequest } from "./hub-request.ts";
import { spliceLimits } from "./limits.ts";
import type { ListenAddress } from "./listener.ts";
import type { LiveLink, LiveLinks } from "./live-links.ts";
import { dial, type OutgoingAnswer, request as send } from "./outgoing.ts";
import type { TrustedProxies } from "./peer-address.ts";
import { later, type Refusal } from "./refusals.ts";
import { countingFrom } from "./relay.ts";
import { readWorkerTarget, type WorkerTarget } from "./targets.ts";
import { tie } from "./tie.ts";
import { acceptsUpgrade, carriesBody, readUpgrade, switchingHead } from "./websocket-upgrade.ts";

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

/** Admits an upgrade and ties it to the hub; resolves with why not, or with null once tied (or gone). */
export async function spliceWorker(
	request: IncomingMessage,
	socket: Socket,
	head: Buffer,
	parts: GatewaySpliceParts,
): Promise<Refusal | null> {
	const { admitter, clock, random, metrics } = parts;
	const startedMs = clock.monotonic();
	if (parts.draining()) return later("draining", random);
	const target = readWorkerTarget(request.url ?? "");
	if ("reason" in target) return target;
	if (target.kind !== "relay") return { reason: "path" };
	const upgrade = readUpgrade(request);
	if ("reason" in upgrade) return upgrade;
	const peer = peerOf(request, parts);
	const admitted = await admitter.link(request, target, peer);
	if ("reason" in admitted) return admitted;
	const answer = await askHub(target, { key: admitted.key, peer, websocketKey: upgrade.key }, socket, parts);
	if (answer.kind !== "switched" || !acceptsUpgrade(answer.response, upgrade.key)) {
		admitted.release();
		return refusalOf(answer, parts);
	}
	metrics.spliced((clock.monotonic() - startedMs) / 1000);
	splice(
		{ socket, head, hub: answer.socket, rest: answer.rest, websocketKey: upgrade.key },
		{ admitted, peer, target },
		parts,
	);
	return null;
}

/** Admits a request for a manifest or a slice and streams the answer; resolves with why not, or null once answered. */
export async function fetchThroughHub(
	request: IncomingMessage,
	response: ServerResponse,
	target: WorkerTarget,
	parts: GatewaySpliceParts,
): Promise<Refusal | null> {
	if (request.method !== "GET") return { reason: "method" };
	if (carriesBody(request)) return { reason: "body" };
	if (parts.draining()) return later("draining", parts.random);
	const peer = peerOf(request, parts);
	const admitted = await parts.admitter.slice(request, target, peer);
	if ("reason" in admitted) return admitted;
	const { range } = request.headers;
	const answer = await askHub(
		target,
		{ key: admitted.key, peer, ...(range === undefined ? {} : { range }) },
		request.socket,
		parts,
	);
	if (answer.kind !== "plain") return refusalOf(answer, parts);
	if (answer.response.statusCode === 503) return refusalOf(answer, parts);
	const bytes = await forwardResponse(answer.response, response);
	answer.socket.destroy();
	if (bytes === null) return { reason: "hub_refused" };
	parts.metrics.request("slice");
	parts.log.info({ key: addressOf(admitted.key), peer, path: target.target, bytes }, "slice");
	return null;
}

async function askHub(
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

interface SplicedSockets {
	readonly socket: Socket;
	readonly head: Buffer;
	readonly hub: Socket;
	readonly rest: Buffer;
	readonly websocketKey: string;
}

function splice(
	{ socket, head, hub, rest, websocketKey }: SplicedSockets,
	{ admitted, peer, target }: { admitted: AdmittedWorker; peer: string; target: WorkerTarget },
	{ links, metrics, clock, log }: GatewaySpliceParts,
): void {
	const link: LiveLink = {
		key: addressOf(admitted.key),
		peer,
		model: target.model,
		openedAtMs: clock.now(),
		bytes: countingFrom(hub, rest),
		cut() {
			socket.destroy();
			hub.destroy();
		},
	};
	const facts = { key: link.key, peer, model: link.model };
	links.add(link);
	metrics.request("spliced");
	log.info(facts, "link opened");
	socket.write(switchingHead(websocketKey));
	if (rest.length > 0) socket.write(rest);
	// Only now: what a stranger sent behind its request never reaches the hub unless the hub accepted the link.
	if (head.length > 0) hub.write(head);
	const { idleMs, halfClosedMs } = spliceLimits;
	void tie(socket, hub, { clock, idleMs, halfClosedMs }).then((end) => {
		const { fromWorker, toWorker } = link.bytes();
		links.remove(link);
		admitted.release();
		log.info({ ...facts, end, up: fromWorker, down: toWorker, ms: clock.now() - link.openedAtMs }, "link closed");
	});
}

/** What a worker is told when the hub did not accept it; the hub's own words stay inside. */
function refusalOf(answer: OutgoingAnswer, { random, log }: GatewaySpliceParts): Refusal {
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
