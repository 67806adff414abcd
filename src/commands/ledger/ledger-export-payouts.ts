import { formatTable } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";
import { gatewayDb, withGatewayStore } from "./ledger-stores.ts";
import { payoutView } from "./payout-view.ts";

export const ledgerExportPayoutsCommand = defineCommand({
	path: "ledger export-payouts",
	section: "ledger",
	summary: "every open claim, to be paid; can be repeated",
	options: { gatewayDb },
	example: "kvasir ledger export-payouts --json > payouts.json",
	async run({ home }, options) {
		const payouts = await withGatewayStore(home, options.gatewayDb, (store) => store.exportPayouts());
		return { data: { payouts: payouts.map(payoutView) } };
	},
	render: ({ payouts }) =>
		payouts.length === 0
			? "Nothing is claimed"
			: formatTable(
					["payout", "KVR", "to"],
					payouts.map(({ id, kvr, address }) => [id, kvr, address]),
				),
});
