import type { BackboneEvent } from "../../backbone/backbone-options.ts";
import { WorkerLink } from "../../backbone/links/worker-link.ts";
import { holdBack } from "../join/hold-back.ts";
import type { Context, Event } from "../program/context.ts";
import type { DispatchRoom } from "./open-dispatch.ts";

/** Collects everything that happens to a backbone's workers; what is returned says where the backbone is, then tells that, a line of JSON each. */
export function reportEvents(context: Context, { backbone, decode, key }: DispatchRoom): () => void {
	const { name, engineClass } = decode.facts;
	const events = holdBack();
	// Where nobody reads JSON, the backbone's own log lines say the same.
	backbone.subscribe((event) => {
		const plain = plainEvent(event);
		events.say(() => context.emit(plain));
	});
	return () => {
		context.emit({ event: "listening", key, model: name, engine: engineClass, port: backbone.address?.port ?? null });
		context.log.info({ key, model: name, engine: engineClass }, "backbone");
		events.letGo();
	};
}

/** An event as plain values: a worker by its key and what it holds, an error by its message. */
function plainEvent({ event, ...facts }: BackboneEvent): Event {
	const plain = Object.entries(facts).flatMap(([name, value]): [string, unknown][] => {
		if (value instanceof WorkerLink) {
			return [
				[name, value.address],
				["experts", value.holdings.count],
			];
		}
		return [[name, value instanceof Error ? value.message : value]];
	});
	return { event, ...Object.fromEntries(plain) };
}
