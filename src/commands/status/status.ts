import { formatBytes } from "../../io/format-amounts.ts";
import { formatFacts, formatTable } from "../../ui/table.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import { value } from "../program/options.ts";
import { formatHostPort, hostPort } from "../program/readers.ts";
import type { GatewayStatus } from "./read-status.ts";

export const statusCommand = defineCommand({
	path: "status",
	section: "status",
	summary: "what a running gateway says of itself",
	options: {
		admin: value("--admin <host:port>", "the gateway's admin address", hostPort, { host: "127.0.0.1", port: 9443 }),
	},
	example: "kvasir status --admin 127.0.0.1:9443",
	async run({ signal }, { admin }): Promise<Outcome<GatewayStatus>> {
		const { readStatus } = await import("./read-status.ts");
		return { data: await readStatus(`http://${formatHostPort(admin)}`, signal) };
	},
	render({ startedAtMs, admission, draining, hub, linkCount, links }) {
		const facts = formatFacts([
			["up since", new Date(startedAtMs).toISOString()],
			["admission", admission],
			["state", draining ? "draining" : "serving"],
			["hub", hubText(hub)],
			["links", linkCount],
		]);
		const rows = links.map(({ key, peer, model, bytes }) => [
			...[key, peer, model || "any", formatBytes(bytes.fromWorker), formatBytes(bytes.toWorker)],
		]);
		const table = rows.length > 0 ? `\n\n${formatTable(["worker", "from", "model", "received", "sent"], rows)}` : "";
		return facts + table;
	},
});

/** Whether the gateway reaches its hub, and what was in the way of the last worker. */
function hubText(hub: GatewayStatus["hub"]): string {
	if (hub === undefined || hub.reached === null) return "not known yet";
	const since = ` since ${new Date(hub.sinceMs).toISOString()}`;
	if (!hub.reached) return `not reached (${hub.reason})${since}`;
	return hub.reason === null ? "reached" : `reached, but no worker can be tied (${hub.reason})${since}`;
}
