import type { BackboneEvent } from "../backbone/backbone.ts";
import type { Context, Event } from "./context.ts";
import type { DispatchRoom } from "./open-dispatch.ts";

/** Says where the backbone is, then tells of everything that happens to its workers: a line of JSON each. */
export function reportEvents(context: Context, { backbone, decode, key }: DispatchRoom): () => void {
	const { name, engineClass } = decode.facts;
	context.emit({ event: "listening", key, model: name, engine: engineClass, port: backbone.address?.port ?? null });
	context.log.info({ key, model: name, engine: engineClass }, "backbone");
	return backbone.subscribe((event) => {
		// Where nobody reads JSON, the backbone's own log lines say the same.
		context.emit(plainEvent(event));
	});
}

function plainEvent(event: BackboneEvent): Event {
	switch (event.event) {
		case "joined":
		case "holding":
		case "draining": {
			const { worker } = event;
			return { event: event.event, worker: worker.address, experts: worker.holdings.count };
		}
		case "left":
			return { event: "left", worker: event.worker.address, code: event.code, reason: event.reason };
		case "parked":
			return { event: "parked", hub: event.hub.host };
		case "park_failed":
			return { event: "park_failed", error: event.error.message, retryMs: event.retryMs };
		case "receipt":
			return { ...event };
		case "audit_failed":
		case "disputed":
		case "refused":
		case "quarantined": {
			const { worker, ...facts } = event;
			return { ...facts, worker: worker.address };
		}
	}
}
