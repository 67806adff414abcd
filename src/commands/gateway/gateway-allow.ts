import { defineCommand } from "../program/command.ts";
import { admissionOptions, withAdmission } from "./admission-at.ts";
import { keyOperand, readKey } from "./key-operand.ts";

export const gatewayAllowCommand = defineCommand({
	path: "gateway allow",
	section: "gateway",
	summary: "let a key in without an invite",
	operands: [keyOperand],
	options: admissionOptions,
	example: "kvasir gateway allow 9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM",
	async run(context, options, [operand]) {
		const key = readKey(operand);
		await withAdmission(context, options, (store) => store.allow(key));
		return { data: { key } };
	},
	render: ({ key }) => `${key} may join`,
});
