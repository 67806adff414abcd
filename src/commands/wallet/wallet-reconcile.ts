import { exitCodes } from "../../errors.ts";
import { addressOf } from "../../io/base58.ts";
import { formatFacts, formatTable } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";
import { ownerKey, ownerOptions, withGateway } from "./wallet-gateway.ts";

export const walletReconcileCommand = defineCommand({
	path: "wallet reconcile",
	section: "wallet",
	summary: "each receipt kept here against the gateway's credits, every difference with its reason",
	options: ownerOptions,
	example: "kvasir wallet reconcile --passphrase-file passphrase.txt",
	async run(context, options) {
		const [{ reconcile }, { readLocalReceipts }] = await Promise.all([
			import("../../wallet/reconcile.ts"),
			import("../../wallet/local-receipts.ts"),
		]);
		const wallet = await ownerKey(context, options);
		const address = addressOf(wallet.publicKey);
		const { home, signal } = context;
		return withGateway(context, options, async (client) => {
			// The lag first: what is polled meanwhile is then among the credits.
			const { cursorLag } = await client.balance(address, signal);
			const credits = client.credits(wallet, 0, signal);
			const data = await reconcile(address, readLocalReceipts(home), { credits, cursorLag });
			return { data, exitCode: data.balanced ? 0 : exitCodes.payment };
		});
	},
	render({ agreed, differences, unpaid, units }) {
		const facts = formatFacts([
			["receipts that agree", agreed],
			["differences", differences.length],
			["units, kept here", units.local],
			["units, credited", units.credited],
			...Object.entries(unpaid).map(([reason, count]) => [`not paid: ${reason}`, count] as const),
		]);
		if (differences.length === 0) return facts;
		const rows = differences.map(({ session, number, reason, localBytes, creditedBytes, explanation }) => [
			...[`${session.slice(0, 8)}.${number}`, reason, localBytes ?? "", creditedBytes ?? "", explanation],
		]);
		return `${facts}\n\n${formatTable(["receipt", "reason", "bytes here", "credited", ""], rows)}`;
	},
});
