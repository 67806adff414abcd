import { defineCommand } from "../program/command.ts";
import { admissionOptions, withAdmission } from "./admission-at.ts";
import { keyOperand, readKey } from "./key-operand.ts";

export const gatewayUnbanCommand = defineCommand({
	path: "gateway unban",
	section: "gateway",
	summary: "let a banned key in again",
	operands: [keyOperand],
	options: admissionOptions,
	example: "kvasir gateway unban 9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM",
	async run(context, options, [operand]) {
		const key = readKey(operand);
		const removed = await withAdmission(context, options, (store) => store.unban(key));
		return { data: { key, removed } };
	},
	render: ({ key, removed }) => (removed ? `${key} is banned no more` : `${key} was not banned`),
});
