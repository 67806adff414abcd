import { addressOf } from "../../io/base58.ts";
import { formatFacts } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";
import { gatewayOptions, meantGateway, withGateway } from "./wallet-gateway.ts";

export const walletBalanceCommand = defineCommand({
	path: "wallet balance",
	section: "wallet",
	summary: "pending, claimed and paid KVR of an address",
	operands: [{ name: "[address]", about: "whose; else this home's wallet, else its node key" }],
	options: gatewayOptions,
	example: "kvasir wallet balance --gateway wss://gate.example",
	async run(context, options, [asked]) {
		const [{ readBalance }, { walletAddress }, { loadNodeKey }] = await Promise.all([
			import("../../wallet/balance.ts"),
			import("../../wallet/wallet-key.ts"),
			import("../../wallet/node-key.ts"),
		]);
		const { home, signal } = context;
		const address = asked ?? (await walletAddress(home)) ?? addressOf((await loadNodeKey(home)).publicKey);
		const url = await meantGateway(home, options);
		if (url === null) return { data: await readBalance({ home, address, client: null }, signal) };
		return withGateway(context, options, async (client) => ({
			data: await readBalance({ home, address, client }, signal),
		}));
	},
	render: (balance) =>
		formatFacts([
			["address", balance.address],
			["pending", `${balance.pending} KVR`],
			["claimed", `${balance.claimed} KVR`],
			["paid", `${balance.paid} KVR`],
			["units", balance.units],
			[
				"last receipt",
				balance.lastReceipt === null ? "none" : `${balance.lastReceipt.number} ${balance.lastReceipt.status}`,
			],
			[
				"source",
				balance.source === "gateway"
					? `the gateway, ${balance.cursorLag} entries behind`
					: "receipts kept in this home",
			],
		]),
});
