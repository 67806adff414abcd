import { KvasirError } from "../../errors.ts";
import { defineCommand } from "../program/command.ts";
import { value } from "../program/options.ts";
import { text } from "../program/readers.ts";
import { gatewayDb, withGatewayStore } from "./ledger-stores.ts";
import { describePayout, payoutView } from "./payout-view.ts";

export const ledgerConfirmPayoutCommand = defineCommand({
	path: "ledger confirm-payout",
	section: "ledger",
	summary: "a claim was paid: note the transaction",
	operands: [{ name: "<id>", about: "the payout, as export-payouts lists it" }],
	options: {
		gatewayDb,
		reference: value("--reference <transaction>", "what paid it; the same again changes nothing", text),
	},
	example: "kvasir ledger confirm-payout ADDRESS.1 --reference TRANSACTION",
	async run({ home }, { gatewayDb: location, reference }, [id]) {
		if (!reference) {
			throw new KvasirError("usage", "Cannot confirm the payout: without its transaction", {
				hint: "Say which: --reference TRANSACTION",
			});
		}
		const payout = await withGatewayStore(home, location, (store) => store.confirmPayout(id!, reference));
		return { data: payoutView(payout) };
	},
	render: describePayout,
});
