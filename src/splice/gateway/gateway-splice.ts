import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { addressOf } from "../../io/base58.ts";
import { acceptsUpgrade, readUpgrade, switchingHead } from "../http/websocket-upgrade.ts";
import { spliceLimits } from "../limits.ts";
import { later, type Refusal } from "../refusals.ts";
import { countingFrom } from "../relay.ts";
import { readWorkerTarget, type WorkerTarget } from "../targets.ts";
import { tie } from "../tie.ts";
import type { AdmittedWorker } from "./admit.ts";
import { askHub, type GatewaySpliceParts, type HubAnswer, peerOf } from "./ask-hub.ts";
import type { LiveLink } from "./live-links.ts";

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
	const answer = await askHub(
		target,
		{ key: admitted.key, peer, websocketKey: upgrade.key },
		{
			from: socket,
			parts,
			fits: (one): one is HubAnswer<"switched"> => one.kind === "switched" && acceptsUpgrade(one.response, upgrade.key),
		},
	);
	if ("reason" in answer) {
		admitted.release();
		return answer;
	}
	metrics.spliced((clock.monotonic() - startedMs) / 1000);
	splice(
		{ socket, head, hub: answer.socket, rest: answer.rest, websocketKey: upgrade.key },
		{ admitted, peer, target },
		parts,
	);
	return null;
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
