import { addressOf } from "../../io/base58.ts";
import { makePrivateFolder } from "../../io/files.ts";
import { defineCommand } from "../program/command.ts";

export const backboneKeyCommand = defineCommand({
	path: "backbone key",
	section: "backbone",
	summary: "print this home's node key, which the hub must list; made on first use",
	options: {},
	example: "kvasir backbone key",
	async run({ home }) {
		const { loadNodeKey } = await import("../../wallet/node-key.ts");
		const { publicKey } = await loadNodeKey(await makePrivateFolder(home));
		return { data: { key: addressOf(publicKey) } };
	},
	render: ({ key }) => key,
});
