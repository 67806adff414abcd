import type { GatewayView } from "../../ui/gateway-screen.tsx";
import type { GatewayStatus } from "./read-status.ts";

/** A gateway's status and when it was asked, monotonic milliseconds. */
export interface Look {
	readonly status: GatewayStatus;
	readonly atMs: number;
}

/** The screen of one look, with rates since the look before. */
export function gatewayView(gateway: string, now: Look, before: Look): GatewayView {
	const seconds = Math.max((now.atMs - before.atMs) / 1000, 0.001);
	const was = new Map(before.status.links.map((link) => [nameOf(link), link.bytes]));
	const { draining, admission, linkCount, links } = now.status;
	return {
		...{ gateway, admission, linkCount },
		state: draining ? "draining" : "serving",
		links: links.map((link) => {
			const { fromWorker, toWorker } = link.bytes;
			const old = was.get(nameOf(link)) ?? link.bytes;
			return {
				...{ key: link.key, peer: link.peer, model: link.model },
				...{ receivedBytes: fromWorker, sentBytes: toWorker },
				receivedRate: (fromWorker - old.fromWorker) / seconds,
				sentRate: (toWorker - old.toWorker) / seconds,
			};
		}),
	};
}

function nameOf({ key, peer, openedAtMs }: GatewayStatus["links"][number]): string {
	return `${key} ${peer} ${openedAtMs}`;
}
