import { admissionOptions, withAdmission } from "./admission-at.ts";
import { defineCommand } from "./command.ts";
import { keyOperand, readKey } from "./key-operand.ts";
import { value } from "./options.ts";
import { text } from "./readers.ts";

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
