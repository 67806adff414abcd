import type { IncomingMessage, ServerResponse } from "node:http";
import { addressOf } from "../../io/base58.ts";
import { forwardResponse } from "../http/forward-response.ts";
import { carriesBody } from "../http/websocket-upgrade.ts";
import { later, type Refusal } from "../refusals.ts";
import type { WorkerTarget } from "../targets.ts";
import { askHub, type GatewaySpliceParts, type HubAnswer, peerOf } from "./ask-hub.ts";

/** Admits a request for a manifest or a slice and streams the answer; resolves with why not, or null once answered. */
export async function sliceThroughHub(
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
		{
			from: request.socket,
			parts,
			fits: (one): one is HubAnswer<"plain"> => one.kind === "plain" && one.response.statusCode !== 503,
		},
	);
	if ("reason" in answer) return answer;
	const bytes = await forwardResponse(answer.response, response);
	answer.socket.destroy();
	if (bytes === null) return { reason: "hub_refused" };
	parts.metrics.request("slice");
	parts.log.info({ key: addressOf(admitted.key), peer, path: target.target, bytes }, "slice");
	return null;
}
