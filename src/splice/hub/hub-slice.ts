import type { IncomingMessage, ServerResponse } from "node:http";
import { goneSignal } from "../gone-signal.ts";
import { forwardResponse } from "../http/forward-response.ts";
import { carriesBody } from "../http/websocket-upgrade.ts";
import { readRelayedWorker } from "../hub-request.ts";
import { later, type Refusal } from "../refusals.ts";
import { askBackbone } from "../relay.ts";
import type { HubRelayParts } from "./hub-relay.ts";

/** A manifest or a slice, over a backbone's socket as plain HTTP; resolves with why not, or with null once answered. */
export async function relaySlice(
	request: IncomingMessage,
	response: ServerResponse,
	parts: HubRelayParts,
): Promise<Refusal | null> {
	const { clock, random, metrics } = parts;
	if (request.method !== "GET") return { reason: "method" };
	if (carriesBody(request)) return { reason: "body" };
	const worker = readRelayedWorker(request, parts);
	if ("reason" in worker) return worker;
	if (worker.target.kind === "relay") return { reason: "upgrade" };
	const gone = goneSignal(request.socket, parts.closing);
	const asked = await askBackbone(worker, parts.source, { clock, random, signal: gone });
	if (!asked.ok) return later(asked.reason, random);
	const { answer } = asked;
	const bytes = answer.kind === "plain" ? await forwardResponse(answer.response, response) : null;
	asked.from.socket.destroy();
	if (bytes === null) return { reason: "backbone_answer" };
	metrics.request("slice");
	return null;
}
