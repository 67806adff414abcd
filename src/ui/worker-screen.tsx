import { Box, Text } from "ink";
import { formatBytes, formatCount, formatCounted, formatMs } from "../io/format-amounts.ts";

/** Everything the worker's screen shows, as one value. */
export interface WorkerView {
	readonly gateway: string;
	/** Base58: who this worker is, and who is paid. */
	readonly worker: string;
	readonly payout: string;
	readonly engine: string;
	/** Such as `4 layers: experts 0-7`. */
	readonly holds: string;
	readonly heldBytes: number;
	readonly upMs: number;
	readonly links: readonly { readonly backbone: string; readonly state: string; readonly roundTripMs: number | null }[];
	readonly work: {
		readonly dispatches: number;
		readonly pairs: number;
		readonly servedBytes: number;
		readonly computeMs: number | null;
	};
	readonly pay: { readonly receipts: number; readonly kvr: string };
	/** Pairs not paid, by reason. */
	readonly unpaid: Readonly<Record<string, number>>;
	/** What was refused, by code. */
	readonly refused: Readonly<Record<string, number>>;
	/** The last things worth telling, newest last. */
	readonly notes: readonly string[];
	readonly draining: boolean;
	/** It has left: this is the last thing shown. */
	readonly left: boolean;
}

/** The live screen of `kvasir join`: the whole of it is a function of the view. */
export function WorkerScreen({ view }: { readonly view: WorkerView }) {
	const linked = view.links.filter(({ state }) => state === "linked").length;
	return (
		<Box flexDirection="column">
			<Box gap={2}>
				<Text bold>kvasir worker</Text>
				<Text color={linked > 0 ? "green" : "yellow"}>{stateOf(view, linked)}</Text>
				<Text dimColor>up {formatUptime(view.upMs)}</Text>
			</Box>
			<Fact label="gateway">{view.gateway}</Fact>
			<Fact label="worker">{view.worker}</Fact>
			<Fact label="paid to">{view.payout === view.worker ? `${view.payout} (this node)` : view.payout}</Fact>
			<Fact label="serves">{`${view.holds}, ${formatBytes(view.heldBytes)}, engine ${view.engine}`}</Fact>
			{(view.left ? [] : view.links).map((link) => (
				<Fact key={link.backbone} label="backbone">
					{`${link.backbone}  ${link.state}${link.roundTripMs === null ? "" : `, ${formatMs(link.roundTripMs)} round trip`}`}
				</Fact>
			))}
			<Fact label="work">{workOf(view)}</Fact>
			<Fact label="pay">{`${view.pay.kvr} KVR in ${formatCounted(view.pay.receipts, "receipt")}`}</Fact>
			<Counts label="unpaid" counts={view.unpaid} />
			<Counts label="refused" counts={view.refused} />
			{view.notes.map((note) => (
				<Text key={note} dimColor wrap="truncate-end">
					{note}
				</Text>
			))}
			{view.left ? null : (
				<Text dimColor>{view.draining ? "draining; Ctrl-C again quits at once" : "Ctrl-C drains and leaves"}</Text>
			)}
		</Box>
	);
}

function Fact({ label, children }: { readonly label: string; readonly children: string }) {
	return (
		<Box>
			<Box width={10} flexShrink={0}>
				<Text dimColor>{label}</Text>
			</Box>
			<Text wrap="truncate-end">{children}</Text>
		</Box>
	);
}

function Counts({ label, counts }: { readonly label: string; readonly counts: Readonly<Record<string, number>> }) {
	const entries = Object.entries(counts).filter(([, count]) => count > 0);
	if (entries.length === 0) return null;
	return <Fact label={label}>{entries.map(([reason, count]) => `${reason} ${formatCount(count)}`).join(", ")}</Fact>;
}

function stateOf(view: WorkerView, linked: number): string {
	if (view.left) return "left";
	if (view.draining) return "draining";
	if (linked === 0) return "dialling";
	return linked === 1 ? "serving" : `serving ${linked} backbones`;
}

function workOf({ work }: WorkerView): string {
	const each = work.computeMs === null ? "" : `, ${formatMs(work.computeMs)} a dispatch`;
	return `${formatCounted(work.pairs, "pair")} in ${formatCount(work.dispatches)} dispatch${work.dispatches === 1 ? "" : "es"}, ${formatBytes(work.servedBytes)}${each}`;
}

function formatUptime(ms: number): string {
	const seconds = Math.floor(ms / 1000);
	const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
	return `${hours}:${String(minutes).padStart(2, "0")}:${String(seconds % 60).padStart(2, "0")}`;
}
