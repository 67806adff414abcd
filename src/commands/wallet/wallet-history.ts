import { addressOf } from "../../io/base58.ts";
import { formatTable } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";
import { ownerKey, ownerOptions, withGateway } from "./wallet-gateway.ts";

export const walletHistoryCommand = defineCommand({
	path: "wallet history",
	section: "wallet",
	summary: "every credit, claim and payout of the wallet, and what was not paid",
	options: ownerOptions,
	example: "kvasir wallet history --passphrase-file passphrase.txt",
	async run(context, options) {
		const { readHistory } = await import("../../wallet/history.ts");
		const wallet = await ownerKey(context, options);
		const { signal } = context;
		return withGateway(context, options, async (client) => {
			const lines = await readHistory(client.credits(wallet, 0, signal), await client.payouts(wallet, signal));
			return { data: { address: addressOf(wallet.publicKey), lines } };
		});
	},
	render({ lines }) {
		const rows = lines.map(({ atMs, kind, kvr, reference, note }) => [
			...[new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z"), kind, kvr, reference, note ?? ""],
		]);
		return lines.length === 0 ? "Nothing yet" : formatTable(["at", "what", "KVR", "reference", ""], rows);
	},
});
