import { formatBytes, formatCounted } from "../../io/format-amounts.ts";
import type { Logger } from "../../io/log.ts";
import type { WorkerView } from "../../ui/worker-screen.tsx";
import { kvrText } from "../../wallet/amounts.ts";
import type { Worker, WorkerSnapshot } from "../../worker/worker.ts";
import type { WorkerEvent } from "../../worker/worker-event.ts";
import type { Context } from "../program/context.ts";
import { isTerminal } from "../program/output.ts";

/** How `join` tells what goes on: a live screen on a terminal, NDJSON with `--json`, else a line for each event. */
export interface WorkerTelling {
	/** What the worker itself logs: notes on the screen, or the command's log. */
	readonly log: Logger;
	onEvent(event: WorkerEvent): void;
	show(worker: Worker): void;
	close(): void;
}

const refreshMs = 250;
const notesMax = 6;

export async function openWorkerView(context: Context): Promise<WorkerTelling> {
	const { host, global } = context;
	if (global.json || global.quiet || !isTerminal(host.env, host.stdout)) return lines(context);
	const { openWorkerScreen } = await import("../../ui/open-worker-screen.tsx");
	const notes: string[] = [];
	const note = (text: string) => {
		const time = new Date(context.clock.now()).toISOString().slice(11, 19);
		notes.push(`${time} ${text}`);
		notes.splice(0, notes.length - notesMax);
	};
	let cancel = () => {};
	let close = () => {};
	return {
		log: noteLog(note),
		onEvent(event) {
			const text = describeEvent(event);
			if (text !== null) note(text);
		},
		show(worker) {
			const view = (left: boolean) => ({ ...viewOf(worker.snapshot(), [...notes]), left });
			const screen = openWorkerScreen(view(false), host.stdout as NodeJS.WriteStream);
			const draw = () => {
				screen.update(view(false));
				cancel = context.clock.after(refreshMs, draw);
			};
			draw();
			close = () => {
				cancel();
				screen.update(view(true));
				screen.close();
			};
		},
		close: () => close(),
	};
}

function lines(context: Context): WorkerTelling {
	return {
		log: context.log,
		onEvent(event) {
			if (event.event === "fetched" || (event.event === "loading" && event.done < event.total)) return;
			context.emit({ ...event }, describeEvent(event) ?? undefined);
		},
		show() {},
		close() {},
	};
}

function viewOf(snapshot: WorkerSnapshot, notes: readonly string[]): Omit<WorkerView, "left"> {
	const { pay, holds, ...rest } = snapshot;
	const layers = new Set(holds.map(({ layer }) => layer)).size;
	const experts = holds.reduce((sum, { count }) => sum + count, 0);
	return {
		...rest,
		holds: `${formatCounted(experts, "expert")} of ${formatCounted(layers, "layer")}`,
		pay: { receipts: pay.receipts, kvr: kvrText(pay.nano) },
		links: snapshot.links.map((link) => ({ ...link, backbone: link.backbone || "not known yet" })),
		notes,
	};
}

/** One event as a line for people; null: nothing worth a line. */
function describeEvent(event: WorkerEvent): string | null {
	switch (event.event) {
		case "loading":
			return null;
		case "holding":
			return `holding ${formatCounted(event.experts, "expert")}, ${formatBytes(event.bytes)}`;
		case "connecting":
			return `dialling ${event.gateway}`;
		case "connected":
			return `serving ${event.model} for ${event.backbone}`;
		case "disconnected": {
			const again = event.redialInMs === null ? "" : `, again in ${(event.redialInMs / 1000).toFixed(1)} s`;
			return `${event.message} [${event.code}]${again}${event.hint === null ? "" : `. ${event.hint}`}`;
		}
		case "receipt":
			return `receipt ${event.number}: ${formatCounted(event.pairs, "pair")} ${event.agreed ? "countersigned" : "disputed"}`;
		case "clock_skew":
			return `this clock is ${event.offsetSeconds} s off the gateway's: set it`;
		case "fetched":
			return null;
		case "fetch_retry":
			return `${event.message} [${event.code}], again in ${(event.inMs / 1000).toFixed(1)} s`;
		case "problem":
			return `${event.message} [${event.code}]${event.hint === null ? "" : `. ${event.hint}`}`;
		case "draining":
			return `draining: ${event.reason}`;
	}
}

function noteLog(note: (text: string) => void): Logger {
	const say = (facts: object, message: string) => {
		const { error } = facts as { error?: unknown };
		note(error === undefined ? message : `${message}: ${String(error)}`);
	};
	const log: Logger = { debug() {}, info() {}, warn: say, error: say, child: () => log };
	return log;
}
