import { addressOf } from "../../io/base58.ts";
import { payoutView } from "../ledger/payout-view.ts";
import { defineCommand } from "../program/command.ts";
import { value } from "../program/options.ts";
import { address, text } from "../program/readers.ts";
import { ownerKey, ownerOptions, withGateway } from "./wallet-gateway.ts";

export const walletClaimCommand = defineCommand({
	path: "wallet claim",
	section: "wallet",
	summary: "have pending KVR paid out",
	options: {
		...ownerOptions,
		to: value("--to <address>", "who gets it; else the wallet's own address", address),
		amount: value("--amount <kvr>", "such as 0.5; all that is pending without it", text),
	},
	example: "kvasir wallet claim --to ADDRESS",
	async run(context, options) {
		const { parseKvr } = await import("../../wallet/amounts.ts");
		const nano = options.amount === undefined ? null : parseKvr(options.amount);
		const wallet = await ownerKey(context, options);
		const order = { nano, address: options.to ?? addressOf(wallet.publicKey) };
		return withGateway(context, options, async (client) => {
			return { data: payoutView(await client.claim(wallet, order, context.signal)) };
		});
	},
	render: ({ kvr, address: to, id }) =>
		`${kvr} KVR are on their way to ${to}\nThe operator pays ${id}: kvasir wallet history`,
});
