import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { goneSignal } from "../gone-signal.ts";
import { readUpgrade, switchingHead } from "../http/websocket-upgrade.ts";
import { spliceLimits } from "../limits.ts";
import { later, type Refusal } from "../refusals.ts";
import { type GatewaySpliceParts, peerOf } from "./ask-hub.ts";

/** Where `kvasir doctor` measures how long the path to the gateway leaves a silent link open. */
const idlePath = "/v1/idle";

export function isIdlePath(url = ""): boolean {
	return url.split("?", 1)[0] === idlePath;
}

/** A close frame of RFC 6455, code 1000. */
const closeFrame = Uint8Array.of(0x88, 0x02, 0x03, 0xe8);

/**
 * A link like a worker's, admitted and counted as one, on which the gateway says nothing: neither a heartbeat nor a hub is behind it.
 * At the first byte that comes it says goodbye, so that the other side knows that the path still carried it. Resolves with why not, or null.
 */
export async function holdIdle(
	request: IncomingMessage,
	socket: Socket,
	head: Buffer,
	parts: GatewaySpliceParts,
): Promise<Refusal | null> {
	const { admitter, clock, random, metrics, closing } = parts;
	if (parts.draining()) return later("draining", random);
	const upgrade = readUpgrade(request);
	if ("reason" in upgrade) return upgrade;
	const admitted = await admitter.link(request, { model: "" }, peerOf(request, parts));
	if ("reason" in admitted) return admitted;
	metrics.request("idle");
	const cancel = clock.after(spliceLimits.idleHeldMs, () => socket.destroy());
	const end = () => {
		cancel();
		admitted.release();
		socket.destroy();
	};
	const gone = goneSignal(socket, closing);
	gone.addEventListener("abort", end, { once: true });
	if (gone.aborted) end();
	const answer = () => socket.end(closeFrame);
	socket.write(switchingHead(upgrade.key));
	if (head.length > 0) answer();
	socket.once("data", answer).once("end", () => socket.end());
	return null;
}
