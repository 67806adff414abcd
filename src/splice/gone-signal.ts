import { type EventEmitter, setMaxListeners } from "node:events";

/** Aborts when the peer goes away or the server closes; holds nothing of the peer once it is gone (AbortSignal.any would). */
export function goneSignal(peer: EventEmitter & { readonly destroyed: boolean }, closing: AbortSignal): AbortSignal {
	const gone = new AbortController();
	const abort = () => gone.abort();
	// One listener for each open peer: as many as there are connections.
	setMaxListeners(0, closing);
	closing.addEventListener("abort", abort, { once: true });
	peer.once("close", () => {
		closing.removeEventListener("abort", abort);
		abort();
	});
	if (peer.destroyed || closing.aborted) abort();
	return gone.signal;
}
