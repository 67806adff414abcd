import { Box, Text } from "ink";
import { formatBytes, formatCount } from "../io/format-amounts.ts";

/** Everything the gateway's screen shows, as one value. */
export interface GatewayView {
	readonly gateway: string;
	readonly state: string;
	readonly admission: string;
	readonly linkCount: number;
	readonly links: readonly {
		readonly key: string;
		readonly peer: string;
		readonly model: string;
		/** Totals, and bytes a second since the last look. */
		readonly receivedBytes: number;
		readonly sentBytes: number;
		readonly receivedRate: number;
		readonly sentRate: number;
	}[];
}

const linksShown = 20;

/** The live screen of `kvasir top`: the busiest links of a gateway, a function of the view. */
export function GatewayScreen({ view }: { readonly view: GatewayView }) {
	const busiest = [...view.links].sort((a, b) => b.receivedRate + b.sentRate - (a.receivedRate + a.sentRate));
	return (
		<Box flexDirection="column">
			<Box gap={2}>
				<Text bold>kvasir gateway</Text>
				<Text color={view.state === "serving" ? "green" : "yellow"}>{view.state}</Text>
				<Text>{`${formatCount(view.linkCount)} links, admission ${view.admission}`}</Text>
				<Text dimColor>{view.gateway}</Text>
			</Box>
			<Row cells={["worker", "from", "model", "received", "sent", "in /s", "out /s"]} dim />
			{busiest.slice(0, linksShown).map((link) => (
				<Row
					key={`${link.key} ${link.peer}`}
					cells={[
						...[link.key, link.peer, link.model || "any"],
						...[link.receivedBytes, link.sentBytes, link.receivedRate, link.sentRate].map(formatBytes),
					]}
				/>
			))}
			<Text dimColor>Ctrl-C leaves</Text>
		</Box>
	);
}

const widths = [16, 22, 12, 11, 11, 11, 11];

function Row({ cells, dim = false }: { readonly cells: readonly string[]; readonly dim?: boolean }) {
	return (
		<Box>
			{widths.map((width, column) => (
				<Box key={width * 100 + column} width={width} flexShrink={0} paddingRight={1}>
					<Text dimColor={dim} wrap="truncate-end">
						{cells[column] ?? ""}
					</Text>
				</Box>
			))}
		</Box>
	);
}
