import { defineCommand } from "../program/command.ts";
import { admissionOptions, withAdmission } from "./admission-at.ts";
import { keyOperand, readKey } from "./key-operand.ts";

export const gatewayDisallowCommand = defineCommand({
	path: "gateway disallow",
	section: "gateway",
	summary: "take a key off the allow list",
	operands: [keyOperand],
	options: admissionOptions,
	example: "kvasir gateway disallow 9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM",
	async run(context, options, [operand]) {
		const key = readKey(operand);
		const removed = await withAdmission(context, options, (store) => store.disallow(key));
		return { data: { key, removed } };
	},
	render: ({ key, removed }) => (removed ? `${key} is off the allow list` : `${key} was not on the allow list`),
});
