import { defineCommand } from "../program/command.ts";
import { value } from "../program/options.ts";
import { text } from "../program/readers.ts";
import { gatewayDb, withGatewayStore } from "./ledger-stores.ts";
import { describePayout, payoutView } from "./payout-view.ts";

export const ledgerReleasePayoutCommand = defineCommand({
	path: "ledger release-payout",
	section: "ledger",
	summary: "a claim could not be paid: its amount is pending again",
	operands: [{ name: "<id>", about: "the payout, as export-payouts lists it" }],
	options: { gatewayDb, reason: value("--reason <text>", "what its owner reads in wallet history", text, "not paid") },
	example: 'kvasir ledger release-payout ADDRESS.1 --reason "no such account"',
	async run({ home }, { gatewayDb: location, reason }, [id]) {
		const payout = await withGatewayStore(home, location, (store) => store.releasePayout(id!, reason));
		return { data: payoutView(payout) };
	},
	render: describePayout,
});
