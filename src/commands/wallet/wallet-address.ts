import { KvasirError } from "../../errors.ts";
import { defineCommand } from "../program/command.ts";

export const walletAddressCommand = defineCommand({
	path: "wallet address",
	section: "wallet",
	summary: "print the address that work is paid to",
	options: {},
	example: "kvasir wallet address",
	async run({ home }) {
		const { walletAddress } = await import("../../wallet/wallet-key.ts");
		const address = await walletAddress(home);
		if (address !== null) return { data: { address } };
		throw new KvasirError("file_missing", `Cannot tell an address: ${home} has no wallet`, {
			hint: "kvasir wallet create makes one; until then a worker is paid to its own node key",
		});
	},
	render: ({ address }) => address,
});
