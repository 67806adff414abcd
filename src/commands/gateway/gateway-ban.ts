import { defineCommand } from "../program/command.ts";
import { value } from "../program/options.ts";
import { text } from "../program/readers.ts";
import { admissionOptions, withAdmission } from "./admission-at.ts";
import { keyOperand, readKey } from "./key-operand.ts";

export const gatewayBanCommand = defineCommand({
	path: "gateway ban",
	section: "gateway",
	summary: "keep a key out and cut its links",
	operands: [keyOperand],
	options: { ...admissionOptions, reason: value("--reason <text>", "for your own records", text, "") },
	example: "kvasir gateway ban 9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM",
	async run(context, options, [operand]) {
		const key = readKey(operand);
		await withAdmission(context, options, (store) => store.ban(key, options.reason));
		return { data: { key } };
	},
	render: ({ key }) => `${key} is banned; a running gateway cuts its links within seconds`,
});
