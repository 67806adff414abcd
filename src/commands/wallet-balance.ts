import { addressOf } from "../io/base58.ts";
import { formatFacts } from "../ui/table.ts";
import { defineCommand } from "./command.ts";
import { requireSafeUrl } from "./insecure.ts";
import { toggle, value } from "./options.ts";
import { text } from "./readers.ts";

export const walletBalanceCommand = defineCommand({
	path: "wallet balance",
	section: "wallet",
	summary: "pending, claimed and paid KVR of an address",
	operands: [{ name: "[address]", about: "whose; else this home's wallet, else its node key" }],
	options: {
		gateway: value("--gateway <url>", "ask this gateway instead of the one that join used last", text),
		insecure: toggle("--insecure", "allow http:// beyond this machine"),
	},
	example: "kvasir wallet balance --gateway wss://gate.example",
	async run({ home, clock, random, signal }, options, [asked]) {
		const [{ readBalance }, { walletAddress }, { loadNodeKey }] = await Promise.all([
			import("../wallet/balance.ts"),
			import("../wallet/wallet-key.ts"),
			import("../wallet/node-key.ts"),
		]);
		if (options.gateway) requireSafeUrl(options.gateway, options.insecure);
		const address = asked ?? (await walletAddress(home)) ?? addressOf((await loadNodeKey(home)).publicKey);
		const gateway = options.gateway ?? null;
		return { data: await readBalance({ home, address, gateway, clock, random }, signal) };
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
